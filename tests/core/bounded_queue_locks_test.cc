// Proof that the queue takes no lock: whatever reaches for one, in any library, is counted.
#include <gtest/gtest.h>

#include "benchmarks/lock_counter.h"
#include "core/bounded_queue.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // there nothing is counted

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace quern {
namespace {

long locks() { return bench::lock_counts()->locks; }

// The counter counts: else the zeros below would mean nothing.
TEST(BoundedQueueLocks, MutexesAndConditionVariablesAreCounted) {
  std::mutex mutex;
  std::condition_variable condition;
  const long before = locks();
  { const std::lock_guard lock(mutex); }
  EXPECT_EQ(locks() - before, 1);
  condition.notify_all();
  EXPECT_EQ(locks() - before, 2);
}

TEST(BoundedQueueLocks, NoneWhenUncontended) {
  BoundedQueue<int> queue(4);
  const long before = locks();
  for (int i = 0; i < 1000; ++i) {
    const bool pushed = queue.try_push(i) && queue.push(i);
    if (!pushed || !queue.try_pop() || !queue.pop()) ADD_FAILURE();
  }
  queue.close();
  EXPECT_EQ(locks() - before, 0);
}

// 4 producers and 4 consumers through 2 cells: they spin, sleep, wake one another and are closed, all without a lock.
// The threads start before the count begins and end after it, because starting a thread may lock.
TEST(BoundedQueueLocks, NoneWhenContendedAndAsleep) {
  constexpr int kPairs = 4, kEach = 5000;
  BoundedQueue<int> queue(2);
  std::atomic<int> ready{0}, producing{kPairs}, consuming{kPairs}, popped{0};
  std::atomic<bool> go{false}, leave{false};
  const auto wait = [](const std::atomic<bool>& flag) {
    while (!flag.load()) std::this_thread::yield();
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < kPairs; ++t) {
    threads.emplace_back([&] {
      ++ready;
      wait(go);
      for (int i = 0; i < kEach; ++i) queue.push(i);
      --producing;
      wait(leave);
    });
    threads.emplace_back([&] {
      ++ready;
      wait(go);
      while (queue.pop()) ++popped;
      --consuming;
      wait(leave);
    });
  }
  while (ready.load() < 2 * kPairs) std::this_thread::yield();
  const long before = locks();
  go = true;
  while (producing.load() > 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // consumers fall asleep, to be woken by close()
  queue.close();
  while (consuming.load() > 0) std::this_thread::yield();
  EXPECT_EQ(locks() - before, 0);
  leave = true;
  threads.clear();
  EXPECT_EQ(popped, kPairs * kEach);
}

}  // namespace
}  // namespace quern

#endif
