#include "core/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/watchdog.h"

namespace quern {
namespace {

TEST(Member, SingleThreadOwnsEverythingAndNeverWaits) {
  const Member alone;
  EXPECT_TRUE(alone.leads());
  EXPECT_TRUE(alone.last());
  EXPECT_EQ(alone.part(17, 4).begin, 0u);
  EXPECT_EQ(alone.part(17, 4).end, 17u);
  alone.meet();
}

TEST(Member, PartsCoverEverythingOnceInWholeUnitsAndEvenly) {
  for (const size_t size : {1, 2, 3, 5, 8, 64}) {
    for (const size_t n : {0, 1, 2, 15, 16, 17, 100, 1000}) {
      for (const size_t unit : {1, 16, 48}) {
        size_t at = 0, min = SIZE_MAX, max = 0;
        for (size_t i = 0; i < size; ++i) {
          const Range part = Member{.index = i, .size = size}.part(n, unit);
          ASSERT_EQ(part.begin, at) << n << " by " << unit << " for " << size;
          ASSERT_LE(part.begin, part.end);
          ASSERT_TRUE(part.begin % unit == 0 || part.begin == n);
          const size_t units = (part.size() + unit - 1) / unit;
          min = std::min(min, units);
          max = std::max(max, units);
          at = part.end;
        }
        ASSERT_EQ(at, n);
        ASSERT_LE(max - min, 1u) << n << " by " << unit << " for " << size;
      }
    }
  }
}

// Each round every member writes its number, and after meeting reads those of all others. Without the second meeting
// the next round's would overtake.
TEST(Team, MeetingPublishesTheWritesOfAllMembers) {
  const test::Watchdog watchdog("meetings");
  for (const size_t size : {2, 3, 8, 16}) {
    const int rounds = 4000 / static_cast<int>(size);
    Team team(size);
    std::vector<int> written(size, -1);
    std::vector<WaitClock> waits(size);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < size; ++i) {
      threads.emplace_back([&, member = Member{.team = &team, .index = i, .size = size, .waits = &waits[i]}] {
        for (int round = 0; round < rounds; ++round) {
          written[member.index] = round;
          member.meet();
          for (const int found : written) EXPECT_EQ(found, round);
          member.meet();
        }
      });
    }
    threads.clear();
    for (const WaitClock& clock : waits) EXPECT_GT(clock.team.sum(), 0);
  }
}

// Before, while and after they wait.
TEST(Team, StopEndsEveryMeeting) {
  const test::Watchdog watchdog("stopped");
  for (const int delay_us : {0, 20, 100, 20'000}) {
    Team team(4);
    std::atomic<int> stopped{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {  // the fourth never comes
      threads.emplace_back([&] {
        try {
          team.meet();
        } catch (const Stopped&) {
          ++stopped;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    team.stop();
    threads.clear();
    EXPECT_EQ(stopped, 3);
    EXPECT_THROW(team.meet(), Stopped);
  }
}

// A failure while the team is meeting all the time: everyone comes out.
TEST(Team, StopEndsATeamAtWork) {
  const test::Watchdog watchdog("stopped at work");
  for (int trial = 0; trial < 200; ++trial) {
    Team team(3);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        try {
          for (;;) team.meet();
        } catch (const Stopped&) {
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(trial));
    team.stop();
  }
}

}  // namespace
}  // namespace quern
