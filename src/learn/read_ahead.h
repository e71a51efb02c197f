// How far a reader may be ahead of the steps, in a buffer that changes meanwhile: by one step, so that rows are fresh.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace quern::learn {

// Two threads: that of the steps, and that of the reader.
class ReadAhead {
 public:
  struct Closed {};  // thrown by await()

  // Before each step, by its thread.
  void begin_step() noexcept { steps_.fetch_add(1, std::memory_order_relaxed); }

  // By the reader, before it reads for its n-th step, counted from 1: waits until that of the step before has begun.
  // Polls, as a step takes milliseconds.
  void await(uint64_t n) const {
    while (steps_.load(std::memory_order_relaxed) + 1 < n) {
      if (closed_.load(std::memory_order_relaxed)) throw Closed();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  // Ends all waits.
  void close() noexcept { closed_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> steps_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace quern::learn
