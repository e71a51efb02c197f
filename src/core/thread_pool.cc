#include "core/thread_pool.h"

#include <utility>

#include "core/error.h"

namespace quern {

ThreadPool::ThreadPool(size_t threads, Work work) : work_(std::move(work)), teams_(threads + 1) {
  for (size_t size = 2; size <= threads; ++size) teams_[size] = std::make_unique<Team>(size);
  try {
    for (size_t i = 1; i < threads; ++i) {
      Helper& helper = *helpers_.emplace_back(std::make_unique<Helper>());
      helper.thread = std::thread([this, &helper, i] { help(helper, i); });
    }
  } catch (const std::exception& error) {
    const size_t given = helpers_.size();  // the caller's thread, and all helpers except the last
    end();
    throw Error("[threads] expected {} threads, found that the system provides only {}: {}", threads, given,
                error.what());
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() noexcept {
  leave_ = true;
  for (const std::unique_ptr<Helper>& helper : helpers_) {
    if (!helper->thread.joinable()) continue;
    helper->posted.add(1);
    helper->thread.join();
  }
}

// The caller cannot post again before every helper has finished, so no post is missed.
void ThreadPool::help(Helper& helper, size_t index) {
  for (uint32_t seen = 0;; ++seen) {
    helper.posted.await_change(seen);
    if (leave_) return;
    take_part(index);
    finished_.add(1);
  }
}

void ThreadPool::run(size_t members) {
  if (members == 1) return work_({});
  members_ = members;
  for (size_t i = 1; i < members; ++i) helpers_[i - 1]->posted.add(1);
  take_part(0);
  await_helpers(members - 1);
  if (!failed_.load(std::memory_order_relaxed)) return;  // made visible by finished_
  failed_.store(false, std::memory_order_relaxed);
  teams_[members] = std::make_unique<Team>(members);  // the old team remains stopped
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::take_part(size_t index) noexcept {
  Team& team = *teams_[members_];
  try {
    work_({.team = &team, .index = index, .size = members_});
    return;
  } catch (const Stopped&) {  // another member failed and has recorded it
    return;
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
  }
  team.stop();
}

void ThreadPool::await_helpers(size_t count) {
  expected_ += static_cast<uint32_t>(count);
  for (uint32_t found = finished_.value(); found != expected_; found = finished_.value()) {
    finished_.await_change(found);
  }
}

}  // namespace quern
