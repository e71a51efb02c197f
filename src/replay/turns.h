// Threads that work on things 0, 1, 2, ... at once and finish them in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace quern::replay {

// Waits last a block of a snapshot, half a millisecond and up: a lock costs nothing here.
class Turns {
 public:
  // Returns when it is the turn of `number`: true; or false after stop().
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

  // Lets everyone go who waits, now and later: one of them failed.
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
