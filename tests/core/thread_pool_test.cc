#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "support/watchdog.h"

namespace quern {
namespace {

TEST(ThreadPool, EveryMemberRunsOnceAndItsWritesAreVisible) {
  const test::Watchdog watchdog("runs");
  for (const size_t threads : {1, 2, 3, 8}) {
    std::vector<int> runs(threads, 0), expected(threads, 0);
    ThreadPool pool(threads, [&](const Member& member) { ++runs[member.index]; });
    ASSERT_EQ(pool.threads(), threads);
    for (size_t round = 0; round < 300; ++round) {
      const size_t members = round % threads + 1;
      pool.run(members);
      for (size_t i = 0; i < members; ++i) ++expected[i];
      ASSERT_EQ(runs, expected) << members << " of " << threads;
    }
  }
}

TEST(ThreadPool, MembersMeet) {
  const test::Watchdog watchdog("meetings");
  std::vector<int> written(4);
  ThreadPool pool(4, [&](const Member& member) {
    for (int round = 0; round < 100; ++round) {
      written[member.index] = round;
      member.meet();
      for (size_t i = 0; i < member.size; ++i) EXPECT_EQ(written[i], round);
      member.meet();
    }
  });
  for (const size_t members : {4, 2, 1, 3, 4}) pool.run(members);
}

// They are asleep when the run comes.
TEST(ThreadPool, RunsAfterAPause) {
  const test::Watchdog watchdog("a pause");
  std::atomic<int> runs{0};
  ThreadPool pool(3, [&](const Member&) { ++runs; });
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.run(3);
  }
  EXPECT_EQ(runs, 9);
}

// Any member may fail, at any meeting, while the others wait for it.
TEST(ThreadPool, ExceptionReachesTheCallerAndThePoolStaysUsable) {
  const test::Watchdog watchdog("an exception");
  for (const size_t threads : {1, 2, 5}) {
    size_t thrower = 0;
    int meeting = 0;
    ThreadPool pool(threads, [&](const Member& member) {
      for (int i = 0; i < 4; ++i) {
        if (member.index == thrower && i == meeting) throw std::runtime_error(std::to_string(thrower));
        member.meet();
      }
    });
    for (thrower = 0; thrower < threads; ++thrower) {
      for (meeting = 0; meeting < 4; ++meeting) {
        try {
          pool.run(threads);
          ADD_FAILURE() << "nothing thrown";
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(error.what(), std::to_string(thrower));
        }
      }
    }
    thrower = threads;
    pool.run(threads);
  }
}

TEST(ThreadPool, OneOfSeveralExceptionsReachesTheCaller) {
  const test::Watchdog watchdog("all fail");
  ThreadPool pool(4, [](const Member&) { throw std::runtime_error("all"); });
  for (int i = 0; i < 100; ++i) EXPECT_THROW(pool.run(4), std::runtime_error);
}

TEST(ThreadPool, CanBeDestroyedWithoutARun) {
  const test::Watchdog watchdog("no run");
  for (int i = 0; i < 50; ++i) const ThreadPool pool(4, [](const Member&) {});
}

}  // namespace
}  // namespace quern
