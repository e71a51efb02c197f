// A time limit for tests of code that could hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace quern::test {

// Ends the program with a message unless it is destroyed within `limit`. A hung thread cannot be stopped, so the
// program has to go; the limit is far above what the slowest sanitizer needs on a busy machine.
class Watchdog {
 public:
  explicit Watchdog(const char* what, std::chrono::seconds limit = std::chrono::seconds(120))
      : thread_([this, what, limit] {
          std::unique_lock lock(mutex_);
          if (condition_.wait_for(lock, limit, [this] { return done_; })) return;
          std::fprintf(stderr, "watchdog: %s hangs\n", what);
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    condition_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool done_ = false;
  std::jthread thread_;  // last: starts when the rest is there
};

}  // namespace quern::test
