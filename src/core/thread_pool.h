// Threads that wait to do a piece of work together with their caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/signal.h"
#include "core/team.h"

namespace quern {

// Between runs the other threads spin for a few microseconds, then sleep. One caller at a time. No lock; a run does not
// allocate.
class ThreadPool {
 public:
  // Called by every member of a run with itself as the argument.
  using Work = std::function<void(const Member& member)>;

  // `threads` includes the caller's, at least 1. Throws Error if the system cannot create that many.
  ThreadPool(size_t threads, Work work);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  size_t threads() const { return helpers_.size() + 1; }

  // Runs the work on a team of `members` threads, 1 to threads(), led by the caller. Returns when all are done;
  // everything they wrote is then visible. Rethrows the exception of the first member to fail; the pool can be used
  // again afterwards.
  void run(size_t members);

 private:
  struct Helper {
    Signal posted;  // number of runs posted to this helper so far
    std::thread thread;
  };

  void help(Helper& helper, size_t index);
  void take_part(size_t index) noexcept;
  void await_helpers(size_t count);
  void end() noexcept;

  Work work_;
  std::vector<std::unique_ptr<Team>> teams_;  // by size
  std::vector<std::unique_ptr<Helper>> helpers_;
  size_t members_ = 1;  // of the current run
  bool leave_ = false;  // exit instead of running
  Signal finished_;     // number of helpers that finished, over all runs
  uint32_t expected_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // written by the thread that set failed_, before it counts as finished
};

}  // namespace quern
