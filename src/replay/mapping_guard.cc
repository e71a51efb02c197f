#include "replay/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace quern::replay {

// Read by the handler at any moment, so entries are lock-free, never freed, and used again. An entry is that of no
// address while `end` is 0.
struct MappingGuard::Entry {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> lost{false};
  Entry* next = nullptr;  // set before it can be found
};

// What the handler needs. Signal handlers may use lock-free atomics and system calls only.
struct BusErrors {
  static inline std::atomic<MappingGuard::Entry*> entries{nullptr};
  static inline struct sigaction previous = {};

  static bool rescue(uintptr_t address) noexcept {
    for (MappingGuard::Entry* e = entries.load(); e != nullptr; e = e->next) {
      const uintptr_t end = e->end.load(), begin = e->begin.load();
      if (address < begin || address >= end) continue;
      e->lost.store(true);  // before the zeros are there, so that nobody sees them and not this
      return mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    }
    return false;
  }

  static void pass_on(int number, siginfo_t* info, void* context) noexcept {
    if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(number, info, context);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
    signal(number, SIG_DFL);
    raise(number);  // blocked until we return
  }

  static void handle(int number, siginfo_t* info, void* context) noexcept {
    const int code = errno;
    const bool from_kernel = info->si_code > 0;  // not sent by kill()
    if (!from_kernel || !rescue(reinterpret_cast<uintptr_t>(info->si_addr))) pass_on(number, info, context);
    errno = code;
  }

  static int install() noexcept {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, nullptr, &previous) != 0) return errno;  // known before it can be needed
    return sigaction(SIGBUS, &action, nullptr) == 0 ? 0 : errno;
  }
};

MappingGuard::Entry* MappingGuard::take_entry() {
  for (Entry* e = BusErrors::entries.load(); e != nullptr; e = e->next) {
    bool taken = false;
    if (e->taken.compare_exchange_strong(taken, true)) return e;
  }
  auto* const added = new Entry;
  added->taken = true;
  added->next = BusErrors::entries.load();
  while (!BusErrors::entries.compare_exchange_weak(added->next, added)) {
  }
  return added;
}

MappingGuard::MappingGuard(void* begin, size_t bytes) {
  static const int code = BusErrors::install();
  if (code != 0) throw Error("[replay] cannot handle SIGBUS: {}", std::generic_category().message(code));
  entry_ = take_entry();
  entry_->lost = false;
  entry_->begin = reinterpret_cast<uintptr_t>(begin);
  entry_->end = reinterpret_cast<uintptr_t>(begin) + bytes;
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

MappingGuard::~MappingGuard() {
  if (entry_ == nullptr) return;
  entry_->end = 0;
  entry_->taken = false;
}

bool MappingGuard::lost() const noexcept { return entry_ != nullptr && entry_->lost.load(std::memory_order_relaxed); }

}  // namespace quern::replay
