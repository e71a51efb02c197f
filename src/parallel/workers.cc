#include "parallel/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/error.h"
#include "core/thread_profile.h"

namespace quern::train {
namespace {

// Pins to the i-th core that this process may use, wrapping around if there are fewer. If the system refuses, the
// thread stays unpinned: the result does not depend on it.
void pin_this_thread(size_t i) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  i %= static_cast<size_t>(CPU_COUNT(&usable));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || i-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
    return;
  }
}

}  // namespace

size_t teams_for(size_t threads, size_t tasks) { return std::max<size_t>(1, std::min(threads, tasks)); }

size_t members_of(size_t team, size_t teams, size_t threads) {
  return Member{.index = team, .size = teams}.part(threads).size();
}

size_t first_thread_of(size_t team, size_t teams, size_t threads) {
  return Member{.index = team, .size = teams}.part(threads).begin;
}

Workers::Workers(const WorkersOptions& options, Run run, Done done, Failed failed)
    : run_(std::move(run)),
      done_(std::move(done)),
      failed_(std::move(failed)),
      queue_(kQueue),
      waits_(options.threads) {
  for (size_t i = 0; i < options.teams; ++i) {
    const size_t size = members_of(i, options.teams, options.threads);
    team_states_.push_back(std::make_unique<TeamState>());
    team_states_[i]->team = std::make_unique<Team>(size);
  }
  try {
    start_threads(options.pin);
  } catch (const std::exception& error) {
    const size_t started = threads_.size();
    end();
    throw Error("[workers] expected {} threads, found that the system provides {}: {}", options.threads, started,
                error.what());
  }
}

void Workers::start_threads(bool pin) {
  threads_.reserve(waits_.size());
  for (size_t i = 0; i < team_states_.size(); ++i) {
    for (size_t m = 0; m < members(i); ++m) {
      const size_t thread = threads_.size();
      const Member member{
          .team = team_states_[i]->team.get(), .index = m, .size = members(i), .waits = &waits_[thread]};
      threads_.emplace_back([this, i, member, thread, pin] {
        if (pin) pin_this_thread(thread);
        thread_main(i, member);
      });
    }
  }
}

Workers::~Workers() { end(); }

// Ends as if a worker had failed: otherwise a worker could wait for a task that was dropped.
void Workers::end() noexcept {
  fail(std::make_exception_ptr(Stopped()));
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(const Task& task) { queue_.push(task); }

void Workers::rethrow() {
  if (failure_set_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);  // pairs with fail()
}

WaitTimes Workers::waits() const {
  WaitTimes sum;
  for (const WaitClock& waits : waits_) {
    sum.tickets += waits.tickets.sum();
    sum.team += waits.team.sum();
    sum.queue += waits.queue.sum();
  }
  return sum;
}

void Workers::thread_main(size_t index, const Member& member) {
  TeamState& state = *team_states_[index];
  try {
    member.leads() ? lead(state, index, member) : follow(state, index, member);
  } catch (const Stopped&) {  // another thread failed and has reported it
  } catch (...) {
    fail(std::current_exception());
  }
}

ThreadProfile* Workers::profile_of(const Member& member) const {
  return profile_ != nullptr ? &profile_->thread(static_cast<size_t>(member.waits - waits_.data())) : nullptr;
}

// The part of the time since `start` that is before the last count_until_now() or after the last count_from_now().
double Workers::counted_since(double start) const {
  const double until = count_until_.load(std::memory_order_relaxed), from = count_from_.load(std::memory_order_relaxed);
  const double before = std::max(0.0, until - start);
  return from < until ? before : before + std::max(0.0, seconds_now() - std::max(start, from));
}

void Workers::count_wait(const Member& member, double start) const {
  const double counted = counted_since(start);
  member.waits->queue.add(counted);
  if (detail::current_profile == nullptr) return;
  detail::current_profile->add_wait(kWorkWait, static_cast<int64_t>(start * 1e9), static_cast<int64_t>(counted * 1e9));
}

void Workers::lead(TeamState& state, size_t index, const Member& member) {
  for (;;) {
    std::optional<Task> task = queue_.try_pop();
    if (!task) {
      const double start = seconds_now();
      task = queue_.pop();
      detail::current_profile = profile_of(member);
      count_wait(member, start);
    } else {
      detail::current_profile = profile_of(member);
    }
    state.leave = !task;
    if (task) state.task = *task;
    if (member.size > 1) state.posted.add(1);
    if (state.leave) return;
    const Timed timed(kOther);
    run_(*task, index, member);
    member.meet();
    done_(*task, index);
  }
}

// The leader cannot post again before every member has returned from the task, so no task is missed.
void Workers::follow(TeamState& state, size_t index, const Member& member) {
  for (uint32_t seen = 0;; ++seen) {
    const double start = seconds_now();
    state.posted.await_change(seen);
    // Check in this order: if a failure posted, the leader may still be writing `leave` and `task`.
    if (has_failed_.load(std::memory_order_acquire) || state.leave) return;
    detail::current_profile = profile_of(member);
    count_wait(member, start);
    const Timed timed(kOther);
    run_(state.task, index, member);
    member.meet();
  }
}

void Workers::fail(std::exception_ptr exception) noexcept {
  if (has_failed_.exchange(true, std::memory_order_acq_rel)) return;
  failure_ = std::move(exception);
  failure_set_.store(true, std::memory_order_release);
  queue_.close();
  while (queue_.try_pop()) {
  }
  for (const std::unique_ptr<TeamState>& state : team_states_) {
    state->team->stop();
    state->posted.add(1);
  }
  failed_();
}

void run_tasks(const WorkersOptions& options, TaskKind kind, size_t count, const Workers::Run& run) {
  if (count == 0) return;
  std::atomic<size_t> remaining{count};
  Signal finished;  // 0 while tasks remain
  Workers workers(
      options, run,
      [&](const Task&, size_t) {
        if (remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) finished.add(1);
      },
      [&] { finished.add(1); });
  for (size_t i = 0; i < count; ++i) workers.submit({.kind = kind, .index = static_cast<uint32_t>(i)});
  finished.await_change(0);
  workers.rethrow();
}

}  // namespace quern::train
