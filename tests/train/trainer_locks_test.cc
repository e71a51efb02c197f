// Proof that a step takes no lock and waits at no barrier: this program's functions for all of these
// are the ones below, which count and pass on, so whatever reaches for one, in any library, is seen.
#include <gtest/gtest.h>

// The sanitizers put their own functions in the same places, and those run before anything here is ready.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdarg>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

#include "support/watchdog.h"
#include "train/sequential.h"

namespace {

std::atomic<long> locks{0}, futexes{0};

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define QUERN_COUNTED(name, type, argument)               \
  int name(type* argument) {                              \
    static const auto real = next<int (*)(type*)>(#name); \
    locks.fetch_add(1, std::memory_order_relaxed);        \
    return real(argument);                                \
  }

extern "C" {

QUERN_COUNTED(pthread_mutex_lock, pthread_mutex_t, mutex)
QUERN_COUNTED(pthread_mutex_trylock, pthread_mutex_t, mutex)
QUERN_COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t, lock)
QUERN_COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t, lock)
QUERN_COUNTED(pthread_cond_signal, pthread_cond_t, condition)
QUERN_COUNTED(pthread_cond_broadcast, pthread_cond_t, condition)
QUERN_COUNTED(pthread_barrier_wait, pthread_barrier_t, barrier)

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(condition, mutex);
}

// std::atomic::wait and notify come through here: sleeping in the kernel, and waking those who do.
long syscall(long number, ...) {
  static const auto real = next<long (*)(long, ...)>("syscall");
  if (number == SYS_futex) futexes.fetch_add(1, std::memory_order_relaxed);
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"

namespace quern::train {
namespace {

using test::Engine;
using test::RandomTokens;

// The counters count: else the zeros below would mean nothing.
TEST(TrainerLocks, LocksAndBarriersAreCounted) {
  const auto counted = [](auto&& body) {
    const long before = locks.load();
    body();
    return locks.load() - before;
  };
  std::mutex mutex;
  std::shared_mutex shared;
  std::condition_variable condition;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 1);
  EXPECT_EQ(counted([&] { const std::lock_guard lock(mutex); }), 1);
  EXPECT_EQ(counted([&] { const std::shared_lock lock(shared); }), 1);
  EXPECT_EQ(counted([&] { condition.notify_all(); }), 1);
  EXPECT_EQ(counted([&] { pthread_barrier_wait(&barrier); }), 1);
  pthread_barrier_destroy(&barrier);
}

TEST(TrainerLocks, SleepingAndWakingAreCounted) {
  const ::quern::test::Watchdog watchdog("sleeper");
  std::atomic<int> word{0};
  const long before = futexes.load();
  std::jthread sleeper([&] { word.wait(0); });
  while (futexes.load() == before) std::this_thread::yield();
  word = 1;
  word.notify_all();
  sleeper.join();
  EXPECT_GE(futexes.load() - before, 2);
}

struct Shape {
  const char* name;
  RunConfig::Model model;
  uint64_t batch;
};

// Fifty steps: micro-batches for every thread, a team for each of two, one team of all.
TEST(TrainerLocks, AStepTakesNone) {
  const ::quern::test::Watchdog watchdog("steps");
  constexpr uint32_t kVocabulary = 65, kSteps = 50;
  const RandomTokens tokens(5000, kVocabulary);
  for (const Shape& shape :
       {Shape{"eight micro-batches", {2, 2, 64, 64, 0, 0.1}, 32}, Shape{"two micro-batches", {2, 2, 64, 64, 0, 0.1}, 8},
        Shape{"one micro-batch", {2, 2, 64, 64, 0, 0.1}, 4}}) {
    for (const uint64_t threads : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::string(shape.name) + ", " + std::to_string(threads) + " threads");
      RunConfig config;
      config.model = shape.model;
      config.train.batch = shape.batch;
      config.train.threads = threads;
      const data::TrainingBatches batches = test::batches_of(config, tokens);
      Engine engine(config, batches, kVocabulary);
      for (int i = 0; i < 5; ++i) engine.trainer.step();
      const long locked = locks.load(), slept = futexes.load();
      for (uint32_t i = 0; i < kSteps; ++i) engine.trainer.step();
      EXPECT_EQ(locks.load() - locked, 0);
      RecordProperty("futex calls of " + std::string(shape.name) + ", " + std::to_string(threads) + " threads",
                     std::to_string(futexes.load() - slept));
    }
  }
}

}  // namespace
}  // namespace quern::train

#endif
