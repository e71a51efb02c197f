// The rate limiter: both sides keep the ratio, and no thread waits forever.
#include "replay/rate_limiter.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/watchdog.h"

namespace quern::replay {
namespace {

struct Limited {
  explicit Limited(const RateLimit& limit)
      : limiter(limit, &counters->published, &counters->inserts, &counters->samples) {}
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;
  ~Limited() { munmap(counters, sizeof(Counters)); }

  bool add(uint64_t rows, double timeout = 0) {
    if (!limiter.admit_inserts(rows, timeout)) return false;
    counters->published.value += rows;
    return true;
  }
  bool sample(uint64_t rows, double timeout = 0) { return limiter.admit_samples(rows, timeout); }

  struct Counters {
    Counter published, inserts, samples;
  };
  // Shared with a forked process.
  Counters* counters =
      new (mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Counters;
  RateLimiter limiter;
};

TEST(RateLimiter, SamplingWaitsForTheMinimumSize) {
  Limited none({.minimum = 10});
  EXPECT_TRUE(none.add(9));
  EXPECT_FALSE(none.sample(1));
  EXPECT_TRUE(none.limiter.admit_inserts(1, 0));  // admitted is not yet there
  EXPECT_FALSE(none.sample(1));
  none.counters->published.value = 10;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(none.sample(100));
    ASSERT_TRUE(none.add(i % 3 == 0 ? 1000 : 0));
  }
}

TEST(RateLimiter, SidesAlternateWithoutSlack) {
  Limited both({.samples_per_insert = 2, .minimum = 4, .slack = 0});
  EXPECT_TRUE(both.add(4));  // free
  EXPECT_EQ(both.limiter.balance(), 0);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(both.add(4));
    ASSERT_FALSE(both.add(4)) << "balance +8";
    ASSERT_TRUE(both.sample(8));
    ASSERT_EQ(both.limiter.balance(), 0);
    ASSERT_TRUE(both.sample(8));
    ASSERT_FALSE(both.sample(8)) << "balance -8";
    ASSERT_TRUE(both.add(4));
  }
}

TEST(RateLimiter, OneSideMayRunAheadByTheSlackAndACall) {
  Limited both({.samples_per_insert = 0.5, .minimum = 1, .slack = 10});
  EXPECT_TRUE(both.add(1));
  int adds = 0, samples = 0;
  while (both.add(3)) ++adds;
  EXPECT_EQ(adds, 7);  // the balance after them is 10.5: 9 was not above 10
  while (both.sample(4)) ++samples;
  EXPECT_EQ(samples, 6);  // 10.5 - 24 = -13.5; -9.5 was not below -10
}

TEST(RateLimiter, NoBatchIsTooLargeForTheSlack) {
  for (const double slack : {0.0, 0.5, 100.0}) {
    for (const uint64_t add : {1, 100, 5000}) {
      for (const uint64_t sample : {1, 256, 7000}) {
        Limited both({.samples_per_insert = 3, .minimum = 1000, .slack = slack});
        uint64_t sampled = 0;
        for (int i = 0; i < 20000; ++i) {
          const bool a = both.add(add), s = both.sample(sample);
          ASSERT_TRUE(a || s) << "both wait: slack " << slack << ", " << add << " and " << sample << " rows";
          sampled += s ? sample : 0;
          const auto bound = static_cast<double>(3 * add + sample);
          ASSERT_LE(std::abs(both.limiter.balance()), slack + bound);
        }
        EXPECT_GT(sampled, 0u);
      }
    }
  }
}

TEST(RateLimiter, TwoActorsAndTwoLearnersKeepTheRatio) {
  const test::Watchdog watchdog("the rate limiter");
  constexpr uint64_t kAdd = 8, kSample = 32;
  constexpr double kSlack = 64, kRatio = 4;
  Limited both({.samples_per_insert = kRatio, .minimum = 100, .slack = kSlack});
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> added{0}, sampled{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop.load()) added += both.add(kAdd, 0.01) ? kAdd : 0;
    });
    threads.emplace_back([&] {
      while (!stop.load()) sampled += both.sample(kSample, 0.01) ? kSample : 0;
    });
  }
  double highest = 0, lowest = 0;
  const double end = seconds_now() + 0.3;
  while (seconds_now() < end) {
    // What is read last may be ahead: so the first cannot come out too high, nor the second too low.
    const uint64_t inserts_first = both.counters->inserts.value, samples_after = both.counters->samples.value;
    highest = std::max(highest, kRatio * static_cast<double>(inserts_first) - static_cast<double>(samples_after));
    const uint64_t samples_first = both.counters->samples.value, inserts_after = both.counters->inserts.value;
    lowest = std::min(lowest, kRatio * static_cast<double>(inserts_after) - static_cast<double>(samples_first));
  }
  stop = true;
  threads.clear();
  EXPECT_LE(highest, kSlack + kRatio * kAdd);
  EXPECT_GE(lowest, -kSlack - kSample);
  EXPECT_LE(std::abs(both.limiter.balance()), kSlack + kSample);
  EXPECT_GT(sampled.load(), 10 * kSample);
  // Of what was added, 100 rows and what raced with them are free: at most a call of the second actor more.
  const auto counted = static_cast<double>(both.counters->inserts.value);
  EXPECT_LE(static_cast<double>(added) - counted, 100 + 2 * kAdd);
  EXPECT_GE(static_cast<double>(added) - counted, 100);
}

TEST(RateLimiter, TimeoutsAreRespected) {
  Limited both({.samples_per_insert = 1, .minimum = 5, .slack = 0});
  for (const bool adding : {false, true}) {
    if (adding) {
      EXPECT_TRUE(both.add(5) && both.add(5));
    }
    for (const double timeout : {0.0, 0.03}) {
      const double begin = seconds_now();
      EXPECT_FALSE(adding ? both.add(1, timeout) : both.sample(1, timeout));
      EXPECT_GE(seconds_now() - begin, timeout);
      EXPECT_LT(seconds_now() - begin, timeout + 5);
    }
  }
  EXPECT_FALSE(both.add(1, std::numeric_limits<double>::quiet_NaN()));
}

TEST(RateLimiter, WaitsWithoutTimeoutForTheOtherSide) {
  const test::Watchdog watchdog("the rate limiter");
  Limited both({.samples_per_insert = 1, .minimum = 5, .slack = 0});
  std::jthread learner([&] { EXPECT_TRUE(both.sample(1, -1)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(both.counters->samples.value.load(), 0u);
  EXPECT_TRUE(both.add(5));
  learner.join();
  EXPECT_EQ(both.counters->samples.value.load(), 1u);
}

// A process that dies while it is admitted, or waits, leaves consistent counters and no sleeping thread.
TEST(RateLimiter, KilledProcessDoesNotLeaveWaitersAsleep) {
  const test::Watchdog watchdog("the rate limiter");
  Limited both({.samples_per_insert = 1, .minimum = 1, .slack = 16});
  EXPECT_TRUE(both.add(1));
  for (int round = 0; round < 10; ++round) {
    const pid_t actor = test::start_child([&] {
      for (;;) both.add(4, -1);
      return 0;
    });
    uint64_t sampled = 0;
    const double end = seconds_now() + 0.02;
    while (seconds_now() < end) sampled += both.sample(4, 0.001) ? 4 : 0;
    kill(actor, SIGKILL);
    EXPECT_EQ(test::wait_for(actor), 128 + SIGKILL);
    EXPECT_GT(sampled, 0u);
  }
  // Whatever balance the last actor left, above the slack or below it, one of the two sides is admitted at once.
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(both.sample(4, 0) || both.add(4, 0)) << i;
}

TEST(RateLimiter, RejectsInvalidLimits) {
  const auto message = [](const RateLimit& limit) { return test::message_of([&] { check_rate_limit(limit, 100); }); };
  EXPECT_EQ(message({}), "no error");
  EXPECT_EQ(message({.samples_per_insert = 3.5, .minimum = 100, .slack = 1e9}), "no error");
  EXPECT_EQ(message({.samples_per_insert = -1}),
            "[replay] rate limit: samples_per_insert: expected a finite number, 0 or more, found -1");
  EXPECT_EQ(message({.slack = std::numeric_limits<double>::quiet_NaN()}),
            "[replay] rate limit: slack: expected a finite number, 0 or more, found nan");
  EXPECT_EQ(message({.minimum = 0}), "[replay] rate limit: minimum: expected 1 to the capacity of 100 rows, found 0");
  EXPECT_EQ(message({.minimum = 101}),
            "[replay] rate limit: minimum: expected 1 to the capacity of 100 rows, found 101");
}

// A damaged counter made those who gave no timeout wait for ever.
TEST(RateLimiter, ImpossibleCountersAreAnError) {
  const test::Watchdog watchdog("the rate limiter");
  struct Case {
    uint64_t inserts, samples;
    bool adds;  // who would wait
  };
  const Case cases[] = {{uint64_t{1} << 60, 7, true},
                        {UINT64_MAX, 0, true},
                        {(uint64_t{1} << 32) + 1000, 0, true},
                        {5, uint64_t{1} << 60, false},
                        {0, UINT64_MAX, false}};
  for (const Case& c : cases) {
    Limited damaged({.samples_per_insert = 2, .minimum = 1, .slack = 10});
    damaged.counters->published.value = 5;
    damaged.counters->inserts.value = c.inserts;
    damaged.counters->samples.value = c.samples;
    for (const double timeout : {-1.0, 0.0, 100.0}) {
      const std::string message =
          test::message_of([&] { c.adds ? damaged.add(1, timeout) : damaged.sample(1, timeout); });
      EXPECT_NE(message.find("expected consistent counters, found"), std::string::npos) << message;
    }
  }
}

TEST(RateLimiter, LargestCallIsNotTakenForDamage) {
  Limited limited({.samples_per_insert = 2, .minimum = 1, .slack = 10});
  limited.counters->published.value = 1;
  EXPECT_TRUE(limited.add(RateLimiter::kMaxRows));
  EXPECT_FALSE(limited.add(1));
  EXPECT_TRUE(limited.sample(RateLimiter::kMaxRows));
  EXPECT_TRUE(limited.sample(RateLimiter::kMaxRows));
  EXPECT_TRUE(limited.sample(RateLimiter::kMaxRows));
  EXPECT_FALSE(limited.sample(1));
  EXPECT_NE(test::message_of([&] { limited.add(RateLimiter::kMaxRows + 1); }).find("at most 4294967296 rows"),
            std::string::npos);
}

}  // namespace
}  // namespace quern::replay
