#include "cli/stop_signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>

namespace quern::cli {
namespace {

// Under a wrapper (make, npm, mpirun), one Ctrl-C arrives twice: from the terminal and from the wrapper.
constexpr int64_t kSameKeypress = 100'000'000;  // nanoseconds

std::atomic<bool> stop_requested{false};
std::atomic<int64_t> first_interrupt{0};  // time by the clock below; 0: none yet
static_assert(std::atomic<int64_t>::is_always_lock_free, "used in a signal handler");

int64_t nanoseconds_now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void on_signal(int signal) {
  stop_requested.store(true, std::memory_order_relaxed);
  if (signal != SIGINT) return;
  const int64_t now = nanoseconds_now();
  int64_t first = 0;
  if (first_interrupt.compare_exchange_strong(first, now, std::memory_order_relaxed)) return;
  if (now - first >= kSameKeypress) _exit(130);
}

bool is_ignored(int signal) {
  struct sigaction now = {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a save in progress must not see EINTR
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    if (signal == SIGHUP && is_ignored(signal)) continue;
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
  return stop_requested;
}

}  // namespace quern::cli
