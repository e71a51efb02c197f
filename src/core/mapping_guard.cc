#include "core/mapping_guard.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace quern {

// The handler may read entries at any moment, so they are lock-free, never freed, and reused. An entry covers no
// address while `end` is 0. The change count is odd during a change, so that the handler never combines the begin of
// one mapping with the end of another.
struct MappingGuard::Entry {
  void set(uintptr_t new_begin, uintptr_t new_end) noexcept {
    changes.fetch_add(1);
    begin = new_begin;
    end = new_end;
    changes.fetch_add(1);
  }

  std::atomic<bool> taken{false};
  std::atomic<uint64_t> changes{0};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> lost{false};
  Entry* next = nullptr;  // set before the entry becomes reachable
};

// State of the handler. Signal handlers may only use lock-free atomics and system calls.
struct BusErrors {
  static inline std::atomic<MappingGuard::Entry*> entries{nullptr};
  static inline struct sigaction first_found = {}, default_action = {}, ignoring = {};
  static inline std::atomic<const struct sigaction*> previous{&default_action};  // points to one of these

  static bool rescue(uintptr_t address) noexcept {
    for (MappingGuard::Entry* e = entries.load(); e != nullptr; e = e->next) {
      const uint64_t changes = e->changes.load();
      const uintptr_t end = e->end.load(), begin = e->begin.load();
      if (address < begin || address >= end) continue;
      // An entry that is changing cannot cover the address, whose guard exists while its mapping is used.
      if (changes % 2 != 0 || e->changes.load() != changes) continue;
      e->lost.store(true);  // before the zeros appear, so that no thread sees them without the flag
      return mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    }
    return false;
  }

  // The handler is compared first: with SIG_DFL and SIG_IGN the flags are meaningless.
  static void pass_on(int number, siginfo_t* info, void* context) noexcept {
    const struct sigaction& before = *previous.load();
    const bool is_sent = info->si_code <= 0;  // by kill(); signals raised by the kernel cannot be ignored
    if (before.sa_handler == SIG_IGN && is_sent) return;
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
      return before.sa_handler(number);
    }
    signal(number, SIG_DFL);
    raise(number);  // blocked until this handler returns
  }

  static void handle(int number, siginfo_t* info, void* context) noexcept {
    const int code = errno;
    const bool from_kernel = info->si_code > 0;  // not sent by kill()
    if (!from_kernel || !rescue(reinterpret_cast<uintptr_t>(info->si_addr))) pass_on(number, info, context);
    errno = code;
  }

  static int install() noexcept {
    ignoring.sa_handler = SIG_IGN;
    if (sigaction(SIGBUS, nullptr, &first_found) != 0) return errno;
    return replace(&first_found);
  }

  // Reinstalls the handler if the signal was reset in the meantime. A handler installed by other code stays: it may
  // call this one, which must not call it back. Thread-safe: all threads do the same.
  static int install_again() noexcept {
    struct sigaction found = {};
    if (sigaction(SIGBUS, nullptr, &found) != 0) return errno;
    if (found.sa_handler == SIG_DFL) return replace(&default_action);
    return found.sa_handler == SIG_IGN ? replace(&ignoring) : 0;
  }

  static int replace(const struct sigaction* found) noexcept {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    previous = found;  // set before it can be needed
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
  static const int first = BusErrors::install();
  const int code = first != 0 ? first : BusErrors::install_again();
  if (code != 0) throw Error("[files] cannot handle SIGBUS: {}", std::generic_category().message(code));
  entry_ = take_entry();
  entry_->lost = false;
  entry_->set(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + bytes);
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

MappingGuard::~MappingGuard() {
  if (entry_ == nullptr) return;
  entry_->set(0, 0);
  entry_->taken = false;
}

bool MappingGuard::lost() const noexcept { return entry_ != nullptr && entry_->lost.load(std::memory_order_relaxed); }

}  // namespace quern
