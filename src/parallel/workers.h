// Teams of threads that take tasks from one queue. Uses a queue and counters, no locks, condition variables or
// barriers.
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

// The phases of a step in their order, of which the exchanges between ranks have no tasks; evaluation.
enum class TaskKind : uint8_t { kTrain, kJoin, kExchange, kUpdate, kShare, kLoss };

struct Task {
  TaskKind kind = TaskKind::kTrain;
  uint32_t index = 0;
  data::Batch* batch = nullptr;
};

struct WorkersOptions {
  size_t threads = 1;  // 1 to kMaxThreads
  size_t teams = 1;    // at most `threads`, which are distributed over them
  bool pin = false;    // pin thread i to the i-th core that the process may use
};

class Workers {
 public:
  // Called by every member of the team that took the task; `team` counts from 0.
  using Run = std::function<void(const Task& task, size_t team, const Member& member)>;
  // Called by the leader, after all members have returned from the task.
  using Done = std::function<void(const Task& task, size_t team)>;
  // Called once, by the thread that failed or by the destructor. Must end all waits between tasks of different teams.
  using Failed = std::function<void()>;

  static constexpr size_t kQueue = 256;

  // Error if the system cannot create that many threads.
  Workers(const WorkersOptions& options, Run run, Done done, Failed failed);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Drops the tasks still in the queue and aborts, as after a failure, those that wait for one of them.
  ~Workers();

  size_t threads() const { return threads_.size(); }
  size_t teams() const { return team_states_.size(); }
  size_t members(size_t team) const { return team_states_[team]->team->size(); }

  // Can be called by any thread, including members. Tasks start in the order of submission. Blocks while the queue is
  // full.
  void submit(const Task& task);

  // Rethrows the exception of a worker, if any. After a failure no task starts, except those already taken.
  void rethrow();

  // Total waiting time of all threads so far, in seconds. A wait counts once it has ended.
  WaitTimes waits() const;
  // Waits between count_until_now() and count_from_now() do not count.
  void count_from_now() { count_from_.store(seconds_now(), std::memory_order_relaxed); }
  void count_until_now() { count_until_.store(seconds_now(), std::memory_order_relaxed); }

  // Profiles the threads as threads 0 ... threads() - 1 of `profile`, which must outlive this object; null stops
  // profiling. Call only while no task is queued or running.
  void set_profile(Profile* profile) { profile_ = profile; }

 private:
  // A team, and what its leader passes to the other members.
  struct TeamState {
    std::unique_ptr<Team> team;
    Task task;
    bool leave = false;  // exit instead of running a task
    Signal posted;       // number of tasks so far
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
  BoundedQueue<Task, 200> queue_;  // spins for 100 us, the gap between two steps, before it sleeps
  std::vector<std::unique_ptr<TeamState>> team_states_;
  std::vector<WaitClock> waits_;  // per thread
  std::atomic<double> count_from_{std::numeric_limits<double>::infinity()}, count_until_{0};
  Profile* profile_ = nullptr;  // made visible by the queue
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;
  std::atomic<bool> failure_set_{false};
  std::vector<std::thread> threads_;
};

// Runs the tasks 0 ... count - 1 of this kind on its own workers and returns when all are done. Rethrows an exception
// of a worker.
void run_tasks(const WorkersOptions& options, TaskKind kind, size_t count, const Workers::Run& run);

// The number of teams to share `tasks` concurrent tasks.
size_t teams_for(size_t threads, size_t tasks);

// The number of members of `team` if `threads` threads are distributed over `teams` teams.
size_t members_of(size_t team, size_t teams, size_t threads);
// The number of threads in the teams before `team`.
size_t first_thread_of(size_t team, size_t teams, size_t threads);

}  // namespace quern::train
