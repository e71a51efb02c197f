// The queue under many threads: no item lost, duplicated or out of order, and no thread left asleep.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "core/clock.h"
#include "support/watchdog.h"

namespace quern {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kScale = 5;  // instrumented code is that much slower, and more
#else
constexpr uint32_t kScale = 1;
#endif

// Where other programs have the cores, a fixed number of items takes minutes, as a hang would. So each part of a test
// ends after this time with as many items as were pushed by then.
constexpr double kSeconds = 2;

struct Item {
  uint32_t producer;
  uint32_t number;
};

// Goes to sleep after the first try that fails, so that sleeping and waking happen all the time.
template <typename T>
using SleepyQueue = BoundedQueue<T, 1>;

// Producers push up to `each` items with push, consumers take them with pop; the queue is closed once all were pushed.
// Every consumer must see the items of one producer in order, and every item must come out exactly once.
template <typename Queue = BoundedQueue<Item>>
void expect_exactly_once(size_t capacity, uint32_t producers, uint32_t consumers, uint32_t each,
                         double seconds = kSeconds) {
  const double deadline = seconds_now() + seconds;
  Queue queue(capacity);
  const auto seen = std::make_unique<std::atomic<uint8_t>[]>(size_t{producers} * each);
  std::atomic<uint64_t> refused{0}, out_of_order{0}, popped{0};
  std::vector<uint32_t> pushed(producers);
  std::vector<std::jthread> producing, consuming;
  for (uint32_t c = 0; c < consumers; ++c) {
    consuming.emplace_back([&] {
      std::vector<int64_t> last(producers, -1);
      uint64_t count = 0, disorder = 0;
      while (const std::optional<Item> item = queue.pop()) {
        disorder += last[item->producer] >= item->number;
        last[item->producer] = item->number;
        seen[size_t{item->producer} * each + item->number].fetch_add(1, std::memory_order_relaxed);
        ++count;
      }
      popped += count;
      out_of_order += disorder;
    });
  }
  for (uint32_t p = 0; p < producers; ++p) {
    producing.emplace_back([&, p] {
      uint32_t i = 0;
      for (; i < each && (i % 64 != 0 || seconds_now() < deadline); ++i) refused += !queue.push({p, i});
      pushed[p] = i;
    });
  }
  producing.clear();  // joins
  queue.close();
  consuming.clear();
  uint64_t wrong_count = 0;
  for (uint32_t p = 0; p < producers; ++p) {
    for (uint32_t i = 0; i < each; ++i) {
      wrong_count += seen[size_t{p} * each + i].load(std::memory_order_relaxed) != (i < pushed[p] ? 1 : 0);
    }
  }
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(popped, std::accumulate(pushed.begin(), pushed.end(), uint64_t{0}));
  EXPECT_EQ(wrong_count, 0u);
  EXPECT_EQ(out_of_order, 0u);
}

TEST(BoundedQueueStress, TenMillionItemsExactlyOnceWith8ProducersAnd8Consumers) {
  const test::Watchdog watchdog("10 million items", std::chrono::seconds(300));
  expect_exactly_once(256, 8, 8, 10000000 / 8, std::numeric_limits<double>::infinity());
}

// Small queues are full or empty most of the time: nearly every call waits, and laps follow each other at once.
TEST(BoundedQueueStress, SmallQueuesUnderContention) {
  const test::Watchdog watchdog("small queues");
  for (const size_t capacity : {1, 2, 4}) expect_exactly_once(capacity, 8, 8, 10000 / kScale);
}

// One lost wake-up and this never ends.
TEST(BoundedQueueStress, SleepingThreadsAreAllWoken) {
  const test::Watchdog watchdog("sleepy queues");
  expect_exactly_once<SleepyQueue<Item>>(1, 1, 1, 20000 / kScale);
  expect_exactly_once<SleepyQueue<Item>>(1, 8, 8, 3000 / kScale);
  expect_exactly_once<SleepyQueue<Item>>(2, 8, 2, 3000 / kScale);
  expect_exactly_once<SleepyQueue<Item>>(2, 2, 8, 12000 / kScale);
  expect_exactly_once<SleepyQueue<Item>>(256, 8, 8, 12000 / kScale);
}

TEST(BoundedQueueStress, UnequalNumbersOfProducersAndConsumers) {
  const test::Watchdog watchdog("unequal numbers");
  expect_exactly_once(64, 1, 8, 200000 / kScale);
  expect_exactly_once(64, 8, 1, 25000 / kScale);
  expect_exactly_once(2, 1, 1, 200000 / kScale);
}

// The same through the calls that never wait.
TEST(BoundedQueueStress, ExactlyOnceWithTryPushAndTryPop) {
  const test::Watchdog watchdog("try_push and try_pop");
  constexpr uint64_t kThreads = 4, kEach = 200000 / kScale;
  BoundedQueue<uint64_t> queue(16);
  std::atomic<uint64_t> sum{0}, squares{0}, popped{0};
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kEach; ++i) {
          while (!queue.try_push(t * kEach + i + 1)) std::this_thread::yield();
        }
      });
      threads.emplace_back([&] {
        while (popped.load() < kThreads * kEach) {
          const std::optional<uint64_t> item = queue.try_pop();
          if (!item) {
            std::this_thread::yield();
            continue;
          }
          popped += 1;
          sum += *item;
          squares += *item * *item;
        }
      });
    }
  }
  constexpr uint64_t kItems = kThreads * kEach;
  EXPECT_EQ(popped, kItems);
  EXPECT_EQ(sum, kItems * (kItems + 1) / 2);
  EXPECT_EQ(squares, kItems * (kItems + 1) / 2 * (2 * kItems + 1) / 3);
}

// close() comes at any moment, also between the steps of a push. An item whose push returned true must come out, even
// if every consumer was about to leave; one whose push returned false must not.
template <typename Queue>
void expect_close_loses_nothing(uint32_t rounds) {
  const double deadline = seconds_now() + kSeconds;
  for (uint32_t round = 0; round < rounds && seconds_now() < deadline; ++round) {
    Queue queue(round % 2 == 0 ? 2 : 64);
    std::atomic<uint64_t> accepted{0}, delivered{0}, accepted_sum{0}, delivered_sum{0};
    {
      std::vector<std::jthread> threads;
      for (uint64_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          for (uint64_t i = 0; queue.push(i * 3 + t); ++i) accepted += 1, accepted_sum += i * 3 + t;
        });
        threads.emplace_back([&] {
          while (const auto item = queue.pop()) delivered += 1, delivered_sum += *item;
        });
      }
      for (uint32_t spin = 0; spin < round % 500; ++spin) spin_pause();
      queue.close();
    }
    ASSERT_EQ(accepted, delivered) << "round " << round;
    ASSERT_EQ(accepted_sum, delivered_sum) << "round " << round;
  }
}

TEST(BoundedQueueStress, CloseRacingWithPushLosesNothing) {
  const test::Watchdog watchdog("close racing with push");
  expect_close_loses_nothing<BoundedQueue<uint64_t>>(2000 / kScale);
  expect_close_loses_nothing<SleepyQueue<uint64_t>>(1000 / kScale);
}

// Each side waits for every item of the other: the longest way through the queue, many thousand times.
TEST(BoundedQueueStress, PingPongThroughTwoQueuesOfOne) {
  const test::Watchdog watchdog("ping pong");
  constexpr int kTurns = 20000 / static_cast<int>(kScale);
  SleepyQueue<int> there(1), back(1);
  std::jthread echo([&] {
    while (const auto item = there.pop()) back.push(*item + 1);
    back.close();
  });
  int value = 0, turns = 0;
  for (const double deadline = seconds_now() + kSeconds; turns < kTurns && seconds_now() < deadline; ++turns) {
    ASSERT_TRUE(there.push(value));
    value = back.pop().value_or(-1);
  }
  there.close();
  EXPECT_EQ(back.pop(), std::nullopt);
  EXPECT_EQ(value, turns);
}

// Owners go through and none is leaked or freed twice (asan and the count would tell), the rest destroyed with the
// queue.
TEST(BoundedQueueStress, OwnersAreNeitherLeakedNorFreedTwice) {
  const test::Watchdog watchdog("owners");
  const auto token = std::make_shared<int>(0);
  {
    BoundedQueue<std::unique_ptr<std::shared_ptr<int>>> queue(64);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5000; ++i) queue.push(std::make_unique<std::shared_ptr<int>>(token));
      });
      threads.emplace_back([&] {
        for (int i = 0; i < 4980; ++i) EXPECT_EQ(queue.pop()->get()->get(), token.get());
      });
    }
    threads.clear();
    EXPECT_EQ(queue.size(), 40u);
    EXPECT_EQ(token.use_count(), 41);
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace quern
