// Threads in teams that take tasks from one queue. No lock, condition variable or barrier: a queue, and counters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "core/signal.h"
#include "core/team.h"
#include "quern/profile.h"

namespace quern::data {
struct Batch;
}

namespace quern::train {

inline constexpr size_t kMaxThreads = 64;  // promise I1 is tested up to here

enum class TaskKind : uint8_t { kTrain, kLoss, kJoin, kUpdate };

struct Task {
  TaskKind kind = TaskKind::kTrain;
  uint32_t index = 0;
  data::Batch* batch = nullptr;
};

struct WorkersOptions {
  size_t threads = 1;  // 1 to kMaxThreads
  size_t teams = 1;    // at most `threads`, which are spread over them
  bool pin = false;    // thread i stays on the i-th core that the process may use
};

class Workers {
 public:
  // Called by every member of the team that took the task; `team` counts from 0.
  using Run = std::function<void(const Task& task, size_t team, const Member& member)>;
  // Called by the leader, once all members are back from it.
  using Done = std::function<void(const Task& task, size_t team)>;
  // Called once, by the thread that failed or by the destructor: must end all waits between tasks of different teams.
  using Failed = std::function<void()>;

  static constexpr size_t kQueue = 256;

  // Error when the system does not give us as many threads.
  Workers(const WorkersOptions& options, Run run, Done done, Failed failed);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Drops the tasks that are still in the queue and cuts short, as a failure does, those that wait for one of them.
  ~Workers();

  size_t threads() const { return threads_.size(); }
  size_t teams() const { return team_states_.size(); }
  size_t members(size_t team) const { return team_states_[team]->team->size(); }

  // Any thread, members included. Tasks are taken up in the order of their submission. Waits while the queue is full.
  void submit(const Task& task);

  // Throws what a worker threw, if one did; no task is begun after that, but for those just taken up.
  void rethrow();

  // What all threads together spent waiting so far, in seconds. A wait counts once it is over.
  WaitTimes waits() const;
  // Between count_until_now() and count_from_now() the threads' waits do not count.
  void count_from_now() { count_from_.store(seconds_now(), std::memory_order_relaxed); }
  void count_until_now() { count_until_.store(seconds_now(), std::memory_order_relaxed); }

  // Has what the threads do timed, as threads 0 ... threads() - 1 of `profile`, which must outlive this; null for no
  // longer. While no task is in the queue or at work.
  void set_profile(Profile* profile) { profile_ = profile; }

 private:
  // A team and what its leader hands to the others.
  struct TeamState {
    std::unique_ptr<Team> team;
    Task task;
    bool leave = false;  // instead of a task
    Signal posted;       // tasks so far
  };

  void start_threads(bool pin);
  void thread_main(size_t state, const Member& member);
  void lead(TeamState& state, size_t index, const Member& member);
  void follow(TeamState& state, size_t index, const Member& member);
  void end() noexcept;
  void fail(std::exception_ptr exception) noexcept;
  ThreadProfile* profile_of(const Member& member) const;
  void count_wait(const Member& member, double start) const;
  double counted_since(double start) const;

  Run run_;
  Done done_;
  Failed failed_;
  BoundedQueue<Task, 200> queue_;  // looks for 100 us before it sleeps: the gap between two steps
  std::vector<std::unique_ptr<TeamState>> team_states_;
  std::vector<WaitClock> waits_;  // one a thread
  std::atomic<double> count_from_{std::numeric_limits<double>::infinity()}, count_until_{0};
  Profile* profile_ = nullptr;  // made visible by the queue
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;
  std::atomic<bool> failure_set_{false};
  std::vector<std::thread> threads_;
};

// Does the tasks 0 ... count - 1 of this kind by workers of its own, and returns when all are done. Throws what one of
// them threw.
void run_tasks(const WorkersOptions& options, TaskKind kind, size_t count, const Workers::Run& run);

// How many teams share `tasks` tasks that are worth doing at once.
size_t teams_for(size_t threads, size_t tasks);

// How many of `threads` threads in `teams` teams are in this one.
size_t members_of(size_t team, size_t teams, size_t threads);

}  // namespace quern::train
