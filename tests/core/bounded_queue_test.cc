// The queue with one thread, or with two that take turns. Many threads: bounded_queue_stress_test.cc.
#include "core/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.h"
#include "support/watchdog.h"

namespace quern {
namespace {

using std::chrono::milliseconds;

TEST(BoundedQueue, IsFirstInFirstOut) {
  BoundedQueue<int> queue(8);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(queue.try_push(i));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(queue.try_pop(), i);
}

TEST(BoundedQueue, RefusesWhenFullAndWhenEmpty) {
  for (const size_t capacity : {1, 2, 4, 256}) {
    BoundedQueue<size_t> queue(capacity);
    EXPECT_EQ(queue.capacity(), capacity);
    EXPECT_EQ(queue.try_pop(), std::nullopt);
    for (size_t i = 0; i < capacity; ++i) {
      EXPECT_EQ(queue.size(), i);
      EXPECT_TRUE(queue.try_push(i));
    }
    EXPECT_FALSE(queue.try_push(99));
    EXPECT_EQ(queue.size(), capacity);
    EXPECT_EQ(queue.try_pop(), size_t{0});
    EXPECT_TRUE(queue.try_push(100));
    EXPECT_FALSE(queue.try_push(101));
  }
}

// A cell must not be filled again before it was emptied: at every fill level, over many laps.
TEST(BoundedQueue, WrapsAroundManyTimes) {
  for (const size_t capacity : {1, 2, 4, 8}) {
    for (size_t level = 1; level <= capacity; ++level) {
      BoundedQueue<size_t> queue(capacity);
      for (size_t i = 0; i < level; ++i) EXPECT_TRUE(queue.try_push(i));
      for (size_t i = 0; i < 1000; ++i) {
        EXPECT_TRUE(level < capacity || !queue.try_push(0)) << "pushed into a full queue";
        EXPECT_EQ(queue.try_pop(), i);
        EXPECT_TRUE(queue.try_push(i + level));
      }
      EXPECT_EQ(queue.size(), level);
    }
  }
}

TEST(BoundedQueue, CapacityMustBeAPowerOfTwo) {
  for (const size_t capacity :
       {size_t{0}, size_t{3}, size_t{6}, size_t{100}, size_t{257}, size_t{1} << 31, ~size_t{0}}) {
    EXPECT_THROW(BoundedQueue<int>{capacity}, Error) << capacity;
  }
  try {
    BoundedQueue<int> queue(100);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[queue] capacity: expected a power of two from 1 to 1073741824, found 100");
  }
}

TEST(BoundedQueue, ClosedQueueRefusesAndDrains) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.push(1));
  EXPECT_TRUE(queue.push(2));
  EXPECT_FALSE(queue.closed());
  queue.close();
  queue.close();
  EXPECT_TRUE(queue.closed());
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_FALSE(queue.push(3));
  EXPECT_FALSE(queue.try_push(3));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_FALSE(queue.try_push(3)) << "room, but closed";
  EXPECT_EQ(queue.try_pop(), 2);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  EXPECT_FALSE(queue.push(3));
}

TEST(BoundedQueue, ClosedAtAnyFillLevelAndLap) {
  for (const size_t capacity : {1, 2, 4}) {
    for (size_t before = 0; before < 3 * capacity; ++before) {
      for (size_t level = 0; level <= capacity; ++level) {
        BoundedQueue<size_t> queue(capacity);
        for (size_t i = 0; i < before; ++i) EXPECT_TRUE(queue.push(i) && queue.pop());
        for (size_t i = 0; i < level; ++i) EXPECT_TRUE(queue.push(i));
        queue.close();
        EXPECT_FALSE(queue.push(9));
        for (size_t i = 0; i < level; ++i) EXPECT_EQ(queue.pop(), i);
        EXPECT_FALSE(queue.try_push(9));
        EXPECT_EQ(queue.pop(), std::nullopt);
      }
    }
  }
}

TEST(BoundedQueue, RefusedMoveOnlyItemStaysWithTheCaller) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  EXPECT_TRUE(queue.try_push(std::move(first)));
  EXPECT_EQ(first, nullptr);  // NOLINT: moved from only on success
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);  // NOLINT
  queue.close();
  EXPECT_FALSE(queue.push(std::move(second)));
  ASSERT_NE(second, nullptr);  // NOLINT
  EXPECT_EQ(**queue.pop(), 1);
}

TEST(BoundedQueue, LargeAndOveralignedItems) {
  struct alignas(128) Item {
    double values[40];
  };
  BoundedQueue<Item> queue(2);
  Item item{};
  item.values[39] = 3.5;
  EXPECT_TRUE(queue.try_push(item));
  EXPECT_EQ(queue.try_pop()->values[39], 3.5);
}

// Counts the objects that exist, moved-from ones included.
struct Counted {
  explicit Counted(int& objects) : alive(&objects) { ++*alive; }
  Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
  ~Counted() { --*alive; }
  int* alive;
};

TEST(BoundedQueue, DestroysEachItemExactlyOnce) {
  int alive = 0;
  {
    BoundedQueue<Counted> queue(8);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(queue.push(Counted(alive)));
    EXPECT_EQ(alive, 5);
    EXPECT_TRUE(queue.pop().has_value());
    EXPECT_EQ(alive, 4);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(queue.push(Counted(alive)) && queue.pop());
    EXPECT_EQ(alive, 4);
    queue.close();
  }
  EXPECT_EQ(alive, 0);
}

// Long enough for the other thread to be past its spins and asleep; if it is not, the test still holds.
void let_sleep() { std::this_thread::sleep_for(milliseconds(20)); }

TEST(BoundedQueue, SleepingConsumerIsWokenByAPush) {
  const test::Watchdog watchdog("BoundedQueue.SleepingConsumerIsWokenByAPush");
  BoundedQueue<int> queue(4);
  std::optional<int> found;
  std::jthread consumer([&] { found = queue.pop(); });
  let_sleep();
  EXPECT_TRUE(queue.try_push(7));
  consumer.join();
  EXPECT_EQ(found, 7);
}

TEST(BoundedQueue, SleepingProducerIsWokenByAPop) {
  const test::Watchdog watchdog("BoundedQueue.SleepingProducerIsWokenByAPop");
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.push(1));
  bool pushed = false;
  std::jthread producer([&] { pushed = queue.push(2); });
  let_sleep();
  EXPECT_EQ(queue.try_pop(), 1);
  producer.join();
  EXPECT_TRUE(pushed);
  EXPECT_EQ(queue.pop(), 2);
}

TEST(BoundedQueue, CloseWakesEverySleeper) {
  const test::Watchdog watchdog("BoundedQueue.CloseWakesEverySleeper");
  BoundedQueue<int> empty(2), full(1);
  EXPECT_TRUE(full.push(0));
  std::atomic<int> ended{0};
  std::vector<std::jthread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] { ended += empty.pop() == std::nullopt; });
    sleepers.emplace_back([&] { ended += !full.push(1); });
  }
  let_sleep();
  EXPECT_EQ(ended, 0);
  empty.close();
  full.close();
  sleepers.clear();
  EXPECT_EQ(ended, 8);
  EXPECT_EQ(full.pop(), 0);
}

// An item whose move stops half-way until it is let go: the queue between two steps of a push or a pop.
struct Stopping {
  struct Gate {
    std::atomic<bool> shut{false}, reached{false};
    void pass() noexcept {
      if (shut) reached = true;
      while (shut) std::this_thread::yield();
    }
    void wait_until_reached() const {
      while (!reached) std::this_thread::yield();
    }
  };
  explicit Stopping(Gate& gate) : gate(&gate) {}
  Stopping(Stopping&& other) noexcept : gate(other.gate) { gate->pass(); }
  Gate* gate;
};

// The push has taken its position and will report success, so the consumer may not leave although the queue is closed
// and has nothing to give yet.
TEST(BoundedQueue, CloseDuringAPushDoesNotLoseTheItem) {
  const test::Watchdog watchdog("BoundedQueue.CloseDuringAPushDoesNotLoseTheItem");
  BoundedQueue<Stopping> queue(2);
  Stopping::Gate gate;
  gate.shut = true;
  std::atomic<bool> accepted{false}, delivered{false}, left{false};
  std::jthread producer([&] { accepted = queue.push(Stopping(gate)); });
  gate.wait_until_reached();
  queue.close();
  std::jthread consumer([&] {
    delivered = queue.pop().has_value();
    left = true;
  });
  let_sleep();
  EXPECT_FALSE(left);
  EXPECT_FALSE(queue.try_pop().has_value());
  gate.shut = false;
  producer.join();
  consumer.join();
  EXPECT_TRUE(accepted);
  EXPECT_TRUE(delivered);
  EXPECT_FALSE(queue.pop().has_value());
}

TEST(BoundedQueue, CellIsNotRefilledDuringAPop) {
  const test::Watchdog watchdog("BoundedQueue.CellIsNotRefilledDuringAPop");
  BoundedQueue<Stopping> queue(1);
  Stopping::Gate first, second;
  EXPECT_TRUE(queue.push(Stopping(first)));
  first.shut = true;
  std::optional<Stopping> found;
  std::jthread consumer([&] { found.emplace(*queue.pop()); });
  first.wait_until_reached();
  EXPECT_FALSE(queue.try_push(Stopping(second)));
  std::atomic<bool> pushed{false};
  std::jthread producer([&] { pushed = queue.push(Stopping(second)); });
  let_sleep();
  EXPECT_FALSE(pushed);
  first.shut = false;
  consumer.join();
  producer.join();
  EXPECT_TRUE(pushed);
  EXPECT_EQ(found->gate, &first);
  EXPECT_EQ(queue.pop()->gate, &second);
}

// Waiting must not burn the core: what a sleeper uses is measured, not assumed.
TEST(BoundedQueue, WaitingThreadsSleep) {
  const test::Watchdog watchdog("BoundedQueue.WaitingThreadsSleep");
  BoundedQueue<int> queue(2);
  timespec used{};
  std::jthread consumer([&] {
    EXPECT_EQ(queue.pop(), std::nullopt);
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  });
  std::this_thread::sleep_for(milliseconds(300));
  queue.close();
  consumer.join();
  EXPECT_LT(static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec), 0.1);
}

}  // namespace
}  // namespace quern
