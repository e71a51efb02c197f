// Threads that stand by to do one thing together with their caller.
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

// Between two runs the others spin for some microseconds, then sleep. One caller at a time. No lock; a run allocates
// nothing.
class ThreadPool {
 public:
  // What every member of a run does, each with itself as argument.
  using Work = std::function<void(const Member& member)>;

  // `threads` with the caller's own, at least 1. Error when the system does not give us as many.
  ThreadPool(size_t threads, Work work);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  size_t threads() const { return helpers_.size() + 1; }

  // The work by a team of this many, 1 to threads(), of which the caller leads. Returns when all are back; what they
  // wrote is then visible. Throws what the first member to fail threw, after which the pool can be used again.
  void run(size_t members);

 private:
  struct Helper {
    Signal posted;  // runs so far, this one's
    std::thread thread;
  };

  void help(Helper& helper, size_t index);
  void take_part(size_t index) noexcept;
  void await_helpers(size_t count);
  void end() noexcept;

  Work work_;
  std::vector<std::unique_ptr<Team>> teams_;  // by size
  std::vector<std::unique_ptr<Helper>> helpers_;
  size_t members_ = 1;  // of the run
  bool leave_ = false;  // instead of a run
  Signal finished_;     // helpers that came back, over all runs
  uint32_t expected_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // whoever set failed_ writes it, before it counts as finished
};

}  // namespace quern
