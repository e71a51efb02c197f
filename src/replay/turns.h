// Lets threads work on items 0, 1, 2, ... concurrently and finish them in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace quern::replay {

// A wait lasts as long as a block of a snapshot, at least half a millisecond, so the cost of a lock is negligible.
class Turns {
 public:
  // Waits for the turn of `number` and returns true; false after stop().
  bool await(uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || current_ == number; });
    return !stopped_;
  }

  void pass() {
    {
      const std::lock_guard lock(mutex_);
      ++current_;
    }
    changed_.notify_all();
  }

  // Releases all current and future waiters, after one of the threads has failed.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t current_ = 0;
  bool stopped_ = false;
};

}  // namespace quern::replay
