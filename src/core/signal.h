// A number that some threads change and others wait to see changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/cache_line.h"

namespace quern {

// Waiting spins for some microseconds, which is what neighbours in a pipeline need to wait; then yields, for when there
// are more threads than cores; then sleeps. Changing costs one read-modify-write and a read while nobody sleeps.
//
// No wake-up is lost. The sleeper counts itself, then compares the number; the other side changes the number, then
// reads the count; all of it seq_cst. Whichever of the two comes first in that order is seen by the other. A store with
// release instead of the read-modify-write could be passed by the read of the count in the store buffer; so could one
// before notify_all() alone, whose count libstdc++ 12 reads without a barrier. That count is also shared by all words
// with the same place in their cache line: one thread asleep anywhere would make every change here a system call.
class alignas(kCacheLine) Signal {
 public:
  // What was written before the number was changed is visible to whoever reads the change.
  uint32_t value() const noexcept { return value_.load(std::memory_order_acquire); }

  void set(uint32_t value) noexcept {
    value_.exchange(value, std::memory_order_seq_cst);
    wake();
  }
  void add(uint32_t n) noexcept {
    value_.fetch_add(n, std::memory_order_seq_cst);
    wake();
  }

  // Returns when the number is not `value` any more.
  void await_change(uint32_t value) noexcept {
    constexpr int kPauses = 100, kYields = 50;
    for (int i = 0; i < kPauses + kYields; ++i) {
      if (value_.load(std::memory_order_acquire) != value) return;
      i < kPauses ? spin_pause() : std::this_thread::yield();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    value_.wait(value, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);  // spares others a call; orders nothing
  }

 private:
  void wake() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) value_.notify_all();
  }

  std::atomic<uint32_t> value_{0};  // of the size of a futex, so that waiting goes to the kernel directly
  std::atomic<uint32_t> sleepers_{0};
};
static_assert(sizeof(Signal) == kCacheLine);

}  // namespace quern
