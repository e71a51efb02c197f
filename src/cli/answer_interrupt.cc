#include "cli/answer_interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace quern::cli {
namespace {

enum State : int { kAtPrompt, kAnswering, kStopping };

// Changed by the handler and by the thread that it interrupts, so the order of other memory does not matter.
std::atomic<int> state{kAtPrompt};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void on_interrupt(int) {
  int answering = kAnswering;
  if (state.compare_exchange_strong(answering, kStopping, std::memory_order_relaxed)) return;
  if (answering == kStopping) return;  // the same keypress, or impatience: the answer ends after its next token
  static_cast<void>(!write(STDERR_FILENO, "\n", 1));
  _exit(130);
}

}  // namespace

void end_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // writing the answer must not see EINTR
  sigaction(SIGINT, &action, nullptr);
}

AnswerInterrupt::AnswerInterrupt() { state.store(kAnswering, std::memory_order_relaxed); }
AnswerInterrupt::~AnswerInterrupt() { state.store(kAtPrompt, std::memory_order_relaxed); }

bool AnswerInterrupt::requested() { return state.load(std::memory_order_relaxed) == kStopping; }

}  // namespace quern::cli
