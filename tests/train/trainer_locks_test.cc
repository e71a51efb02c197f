// Proof that a step takes no lock and waits at no barrier: whatever reaches for one, in any library, is counted.
#include <gtest/gtest.h>

#include "benchmarks/lock_counter.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // there nothing is counted

#include <pthread.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

#include "support/watchdog.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

long locks() { return bench::lock_counts()->locks; }
long futexes() { return bench::lock_counts()->futexes; }

using test::Engine;
using test::RandomTokens;

// The counters count: else the zeros below would mean nothing.
TEST(TrainerLocks, LocksAndBarriersAreCounted) {
  const auto counted = [](auto&& body) {
    const long before = locks();
    body();
    return locks() - before;
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
  const long before = futexes();
  std::jthread sleeper([&] { word.wait(0); });
  while (futexes() == before) std::this_thread::yield();
  word = 1;
  word.notify_all();
  sleeper.join();
  EXPECT_GE(futexes() - before, 2);
}

struct Shape {
  const char* name;
  RunConfig::Model model;
  uint64_t batch;
};

// Fifty steps: micro-batches for every thread, a team for each of two, one team of all.
TEST(TrainerLocks, StepTakesNoLock) {
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
      const long locked = locks(), slept = futexes();
      for (uint32_t i = 0; i < kSteps; ++i) engine.trainer.step();
      EXPECT_EQ(locks() - locked, 0);
      RecordProperty("futex calls of " + std::string(shape.name) + ", " + std::to_string(threads) + " threads",
                     std::to_string(futexes() - slept));
    }
  }
}

}  // namespace
}  // namespace quern::train

#endif
