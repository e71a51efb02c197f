#include "quern/profile.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "core/thread_profile.h"

namespace quern {
namespace {

const Region kOuter("test outer"), kInner("test inner", Unit::kBytes), kOther("test other", Unit::kFlops);

void spin(double milliseconds) {
  const int64_t end = nanoseconds_now() + static_cast<int64_t>(milliseconds * 1e6);
  while (nanoseconds_now() < end) {
  }
}

std::map<std::string, ProfileRow> by_name(const std::vector<ProfileRow>& rows) {
  std::map<std::string, ProfileRow> map;
  for (const ProfileRow& row : rows) map.emplace(row.name, row);
  return map;
}

TEST(Profile, ThreadsWithoutAProfileAreNotTimed) {
  Profile profile({.threads = 1, .events = 10});
  { const Timed timed(kOuter); }
  { const ProfiledThread here(profile, 0); }
  { const Timed timed(kOuter); }
  EXPECT_TRUE(profile.rows().empty());
  EXPECT_TRUE(profile.thread(0).events().empty());
}

TEST(Profile, RowsHaveCountTotalMinMaxAndWork) {
  Profile profile({});
  const ProfiledThread here(profile, 0);
  for (const double time : {2.0, 1.0, 4.0}) {
    const Timed timed(kInner, 1000);
    spin(time);
  }
  const std::vector<ProfileRow> rows = profile.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_STREQ(rows[0].name, "test inner");
  EXPECT_EQ(rows[0].unit, Unit::kBytes);
  EXPECT_EQ(rows[0].count, 3u);
  EXPECT_EQ(rows[0].work, 3000);
  EXPECT_GE(rows[0].total, 0.007);
  EXPECT_GE(rows[0].min, 0.001);
  EXPECT_GE(rows[0].max, 0.004);
  EXPECT_LE(rows[0].min + rows[0].max, rows[0].total - 0.002 + 1e-9);
  EXPECT_DOUBLE_EQ(rows[0].average(), rows[0].total / 3);
  EXPECT_DOUBLE_EQ(rows[0].rate(), 3000 / rows[0].total);
}

// Else a table's shares would be more than everything.
TEST(Profile, NestedRegionsAreExcluded) {
  Profile profile({.threads = 1, .events = 10});
  const ProfiledThread here(profile, 0);
  {
    const Timed outer(kOuter);
    spin(1);
    for (int i = 0; i < 2; ++i) {
      const Timed inner(kInner);
      spin(2);
      const Timed other(kOther);
      spin(1);
    }
  }
  const auto rows = by_name(profile.rows());
  EXPECT_GE(rows.at("test inner").total, 0.004);
  EXPECT_GE(rows.at("test other").total, 0.002);
  EXPECT_GE(rows.at("test outer").total, 0.001);
  const std::vector<ProfileEvent> events = profile.thread(0).events();  // the trace shows one inside the other
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events.back().region, kOuter.id());
  EXPECT_LE(events.back().begin, events[0].begin);
  const double whole = static_cast<double>(events.back().end - events.back().begin) * 1e-9;
  const double sum = rows.at("test outer").total + rows.at("test inner").total + rows.at("test other").total;
  EXPECT_NEAR(sum, whole, 1e-9);
}

TEST(Profile, LongestRegionsComeFirstAndThreadsAreSummed) {
  Profile profile({.threads = 3});
  const auto add = [&](size_t thread, const Region& region, int64_t nanoseconds) {
    std::thread([&] {
      profile.thread(thread).add({0, nanoseconds, static_cast<uint32_t>(region.id()), 0, 1, 1}, nanoseconds, 1);
    }).join();
  };
  add(0, kOuter, 3000);
  add(1, kInner, 2000);
  add(2, kInner, 2500);
  const std::vector<ProfileRow> rows = profile.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_STREQ(rows[0].name, "test inner");
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_DOUBLE_EQ(rows[0].total, 4.5e-6);
  EXPECT_DOUBLE_EQ(rows[0].min, 2e-6);
  EXPECT_DOUBLE_EQ(rows[0].max, 2.5e-6);
  EXPECT_EQ(rows[0].work, 2);
  EXPECT_EQ(profile.rows(1, 2)[0].count, 1u);
  EXPECT_TRUE(profile.rows(0, 0).empty());
}

TEST(Profile, ExceptionEndsARegion) {
  Profile profile({});
  const ProfiledThread here(profile, 0);
  try {
    const Timed outer(kOuter);
    const Timed inner(kInner);
    throw 1;
  } catch (int) {
  }
  { const Timed other(kOther); }
  for (const auto& [name, row] : by_name(profile.rows())) EXPECT_EQ(row.count, 1u) << name;
}

TEST(Profile, TraceHoldsTheNewestEventsAndCountsDroppedOnes) {
  Profile profile({.threads = 1, .events = 4});
  const ProfiledThread here(profile, 0);
  int64_t third = 0;
  for (int i = 1; i <= 7; ++i) {
    set_profile_place({.step = static_cast<uint32_t>(i), .micro_batch = 9});
    const Timed timed(kOuter, 0, i);
    if (i == 4) third = nanoseconds_now();
  }
  const std::vector<ProfileEvent> events = profile.thread(0).events();
  ASSERT_EQ(events.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].step, 4 + i);
    EXPECT_EQ(events[i].layer, static_cast<int32_t>(4 + i));
    EXPECT_EQ(events[i].micro_batch, 9u);
    EXPECT_GT(events[i].end, profile.thread(0).forgotten_until());
  }
  EXPECT_LE(profile.thread(0).forgotten_until(), third);
  EXPECT_GT(profile.thread(0).forgotten_until(), 0);
}

// Reading is allowed while others write: each number is one that was true a moment ago. For the thread sanitizer.
TEST(Profile, RowsCanBeReadWhileAThreadRuns) {
  Profile profile({});
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    const ProfiledThread here(profile, 0);
    while (!stop.load()) const Timed timed(kInner, 1);
  });
  uint64_t seen = 0;
  while (seen < 1000) {
    for (const ProfileRow& row : profile.rows()) {
      EXPECT_GE(row.count, seen);
      seen = row.count;
    }
  }
  stop = true;
  worker.join();
}

// Last: it uses all regions up, as a program with too many would.
TEST(ProfileRegions, RegionsBeyondTheLimitShareARow) {
  std::vector<Region> many;
  for (size_t i = 0; i < kMaxRegions + 5; ++i) many.emplace_back("one of many", Unit::kBytes);
  EXPECT_EQ(many.back().id(), kMaxRegions - 1);
  Profile profile({});
  const ProfiledThread here(profile, 0);
  { const Timed timed(many.back(), 5); }
  { const Timed timed(many[many.size() - 2], 5); }
  ASSERT_EQ(profile.rows().size(), 1u);
  EXPECT_STREQ(profile.rows()[0].name, "more regions");
  EXPECT_EQ(profile.rows()[0].count, 2u);
  EXPECT_EQ(profile.rows()[0].unit, Unit::kNone);
}

}  // namespace
}  // namespace quern
