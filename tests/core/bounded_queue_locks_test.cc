// Proof that the queue takes no lock: this program's pthread_mutex_lock and pthread_cond_wait are the ones below, which
// count and pass on, so whatever reaches for a mutex or a condition variable, in any library, is seen.
#include <gtest/gtest.h>

#include "core/bounded_queue.h"

// The sanitizers put their own functions in the same places, and those run before anything here is ready.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::atomic<int> locks{0};

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(condition, mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  static const auto real = next<int (*)(pthread_cond_t*)>("pthread_cond_signal");
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  static const auto real = next<int (*)(pthread_cond_t*)>("pthread_cond_broadcast");
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(condition);
}

}  // extern "C"

namespace quern {
namespace {

// The counter counts: else the zeros below would mean nothing.
TEST(BoundedQueueLocks, MutexesAndConditionVariablesAreCounted) {
  std::mutex mutex;
  std::condition_variable condition;
  const int before = locks.load();
  { const std::lock_guard lock(mutex); }
  EXPECT_EQ(locks.load() - before, 1);
  condition.notify_all();
  EXPECT_EQ(locks.load() - before, 2);
}

TEST(BoundedQueueLocks, NoneWhenUncontended) {
  BoundedQueue<int> queue(4);
  const int before = locks.load();
  for (int i = 0; i < 1000; ++i) {
    const bool pushed = queue.try_push(i) && queue.push(i);
    if (!pushed || !queue.try_pop() || !queue.pop()) ADD_FAILURE();
  }
  queue.close();
  EXPECT_EQ(locks.load() - before, 0);
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
  const int before = locks.load();
  go = true;
  while (producing.load() > 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // consumers fall asleep, to be woken by close()
  queue.close();
  while (consuming.load() > 0) std::this_thread::yield();
  EXPECT_EQ(locks.load() - before, 0);
  leave = true;
  threads.clear();
  EXPECT_EQ(popped, kPairs * kEach);
}

}  // namespace
}  // namespace quern

#endif
