#include "core/signal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "support/watchdog.h"

namespace quern {
namespace {

TEST(Signal, CountsAndCanBeSet) {
  Signal signal;
  EXPECT_EQ(signal.value(), 0u);
  signal.add(3);
  EXPECT_EQ(signal.value(), 3u);
  signal.set(7);
  EXPECT_EQ(signal.value(), 7u);
  signal.await_change(3);  // it is not 3: no wait
}

TEST(Signal, WakesEverySleeper) {
  const test::Watchdog watchdog("sleepers");
  for (const bool by_set : {true, false}) {
    Signal signal;
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < 8; ++i) sleepers.emplace_back([&] { signal.await_change(0); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // they sleep
    by_set ? signal.set(1) : signal.add(1);
    sleepers.clear();
    EXPECT_EQ(signal.value(), 1u);
  }
}

// Two threads answer each other. Rests of all lengths around that of falling asleep, so that a wake-up which comes
// between the last look and the sleep would be lost here, and what was written before a change is there after it.
TEST(Signal, LosesNoWakeUpAndPublishesEarlierWrites) {
  const test::Watchdog watchdog("ping pong");
  std::atomic<uint32_t> rounds{20'000};  // fewer where other programs have the cores, and a round takes milliseconds
  const double deadline = seconds_now() + 3;
  Signal ping, pong;
  uint32_t message = 0;
  const auto rest = [](uint32_t round) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(round % 64 * 500);
    while (round % 5 == 0 && std::chrono::steady_clock::now() < end) spin_pause();
  };
  std::jthread answering([&] {
    for (uint32_t round = 0; round < rounds.load(); ++round) {
      ping.await_change(round);
      EXPECT_EQ(message, 2 * round + 1);
      message = 2 * round + 2;
      rest(round);
      pong.add(1);
    }
  });
  for (uint32_t round = 0; round < rounds.load(); ++round) {
    if (seconds_now() > deadline) rounds = round + 1;
    message = 2 * round + 1;
    rest(round + 2);
    ping.set(round + 1);
    pong.await_change(round);
    EXPECT_EQ(message, 2 * round + 2);
  }
}

}  // namespace
}  // namespace quern
