#include "core/event_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "support/watchdog.h"

namespace quern {
namespace {

TEST(EventCount, DoesNotSleepWhenReady) {
  const test::Watchdog watchdog("EventCount.DoesNotSleepWhenReady");
  EventCount events;
  int looked = 0;
  events.wake_one();  // no thread sleeps
  events.wake_all();
  events.sleep_unless([&] { return ++looked > 0; });
  EXPECT_EQ(looked, 1);
}

// Two threads pass a ball through one counter, each asleep while the other has it, without spinning first: one lost
// wake-up and both sleep for ever. Every turn takes two switches between threads, milliseconds where other programs
// have the cores, so that the first player ends the game after some seconds.
TEST(EventCount, LosesNoWakeUp) {
  const test::Watchdog watchdog("EventCount.LosesNoWakeUp");
  constexpr int kTurns = 50000;
  EventCount events[2];
  std::atomic<int> turn{0}, end{kTurns};
  const double deadline = seconds_now() + 3;
  const auto play = [&](int me) {
    for (int mine = me; mine < end.load(); mine += 2) {
      if (me == 0 && seconds_now() > deadline) end = mine + 2;  // after this turn and the other player's
      while (turn.load() != mine) events[me].sleep_unless([&] { return turn.load() == mine; });
      turn.fetch_add(1);
      events[1 - me].wake_one();
    }
  };
  {
    std::jthread other([&] { play(1); });
    play(0);
  }
  EXPECT_EQ(turn, end);
}

// Permits are handed out one by one, each with one wake, to sleepers that each use up many of them.
TEST(EventCount, OneWakePerPermitSuffices) {
  const test::Watchdog watchdog("EventCount.OneWakePerPermitSuffices");
  constexpr int kPermits = 40000, kSleepers = 4;
  EventCount events;
  std::atomic<int> permits{0}, used{0};
  std::vector<std::jthread> sleepers;
  for (int i = 0; i < kSleepers; ++i) {
    sleepers.emplace_back([&] {
      for (int n = 0; n < kPermits / kSleepers; ++n) {
        for (int seen = permits.load(); seen == 0 || !permits.compare_exchange_weak(seen, seen - 1);) {
          if (seen == 0) events.sleep_unless([&] { return permits.load() > 0; });
          seen = permits.load();
        }
        used.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < kPermits; ++i) {
    permits.fetch_add(1);
    events.wake_one();
  }
  sleepers.clear();
  EXPECT_EQ(used, kPermits);
  EXPECT_EQ(permits, 0);
}

TEST(EventCount, WakeAllWakesEveryone) {
  const test::Watchdog watchdog("EventCount.WakeAllWakesEveryone");
  for (int round = 0; round < 200; ++round) {
    EventCount events;
    std::atomic<bool> open{false};
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < 4; ++i) {
      sleepers.emplace_back([&] {
        while (!open.load()) events.sleep_unless([&] { return open.load(); });
      });
    }
    if (round % 2 == 0) std::this_thread::yield();
    open.exchange(true);
    events.wake_all();
    sleepers.clear();
    EXPECT_TRUE(open);
  }
}

}  // namespace
}  // namespace quern
