// A number that some threads change while others wait for the change.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/cache_line.h"

namespace quern {

// Waiting spins for a few microseconds, which is the usual wait between neighbours in a pipeline; then yields, in case
// threads outnumber cores; then sleeps. A change costs one read-modify-write, and one read while no thread sleeps.
//
// No wake-up is lost. The sleeper counts itself, then compares the number; the other side changes the number, then
// reads the count; all of it seq_cst. Whichever comes first in that order is seen by the other. A release store instead
// of the read-modify-write could still be in the store buffer when the count is read; the same holds for a store before
// notify_all() alone, whose count libstdc++ 12 reads without a barrier. That count is also shared by all words at the
// same offset in their cache line: one sleeping thread anywhere would make every change here a system call.
class alignas(kCacheLine) Signal {
 public:
  // Everything written before the number was changed is visible to the thread that reads the change.
  uint32_t value() const noexcept { return value_.load(std::memory_order_acquire); }

  void set(uint32_t value) noexcept {
    value_.exchange(value, std::memory_order_seq_cst);
    wake();
  }
  void add(uint32_t n) noexcept {
    value_.fetch_add(n, std::memory_order_seq_cst);
    wake();
  }

  // Returns when the number no longer equals `value`.
  void await_change(uint32_t value) noexcept {
    constexpr int kPauses = 100, kYields = 50;
    for (int i = 0; i < kPauses + kYields; ++i) {
      if (value_.load(std::memory_order_acquire) != value) return;
      i < kPauses ? spin_pause() : std::this_thread::yield();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    value_.wait(value, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);  // saves others a call; orders nothing
  }

 private:
  void wake() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) value_.notify_all();
  }

  std::atomic<uint32_t> value_{0};  // the size of a futex, so that wait() goes to the kernel directly
  std::atomic<uint32_t> sleepers_{0};
};
static_assert(sizeof(Signal) == kCacheLine);

}  // namespace quern
