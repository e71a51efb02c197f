// Threads that work together on one thing, each on its part of every operation.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "core/cache_line.h"
#include "core/range.h"

namespace quern {

// Thrown where a thread waits for others and will wait in vain, because one of them failed.
struct Stopped {};

// What a thread spent waiting, in seconds. Written by that thread alone.
struct alignas(kCacheLine) WaitTimes {
  double tickets = 0;  // for its turn to add to a gradient
  double team = 0;     // for the other members of its team
  double queue = 0;    // for something to do
};

inline double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns when `word` is not `value` any more. Spins for some microseconds, which is what neighbours in a pipeline need
// to wait; then yields, for when there are more threads than cores; then sleeps. Whoever changes the word calls
// notify_all().
inline void await_change(const std::atomic<uint32_t>& word, uint32_t value) noexcept {
  constexpr int kPauses = 100, kYields = 50;
  for (int i = 0; i < kPauses + kYields; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
    i < kPauses ? spin_pause() : std::this_thread::yield();
  }
  word.wait(value, std::memory_order_acquire);
}

// Where the members of a team meet between operations that read what others wrote. A counter, no lock.
class Team {
 public:
  explicit Team(size_t size) : size_(static_cast<uint32_t>(size)) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t size() const noexcept { return size_; }

  // Returns when every member has called it as often as this one; what they wrote before is then visible. Throws
  // Stopped after stop().
  void meet() {
    const uint32_t phase = phase_.load(std::memory_order_acquire);
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);    // made visible by the next line
      phase_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in await_change
      phase_.notify_all();
    } else {
      await_change(phase_, phase);
    }
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
  }

  // Ends every wait, now and later.
  void stop() noexcept {
    stopped_.store(true, std::memory_order_seq_cst);
    phase_.fetch_add(1, std::memory_order_seq_cst);
    phase_.notify_all();
  }

 private:
  const uint32_t size_;
  std::atomic<bool> stopped_{false};
  alignas(kCacheLine) std::atomic<uint32_t> arrived_{0};
  alignas(kCacheLine) std::atomic<uint32_t> phase_{0};
};

// One thread of a team; by default a thread alone.
struct Member {
  Team* team = nullptr;
  size_t index = 0;
  size_t size = 1;
  WaitTimes* waits = nullptr;  // not measured when null

  bool leads() const { return index == 0; }
  bool last() const { return index + 1 == size; }

  void meet() const {
    if (size == 1) return;
    const double start = waits != nullptr ? seconds_now() : 0;
    team->meet();
    if (waits != nullptr) waits->team += seconds_now() - start;
  }

  // This member's part of n things: whole units, spread evenly.
  Range part(size_t n, size_t unit = 1) const {
    const size_t units = (n + unit - 1) / unit;
    return {std::min(n, units * index / size * unit), std::min(n, units * (index + 1) / size * unit)};
  }
};

}  // namespace quern
