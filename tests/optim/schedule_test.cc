#include "optim/schedule.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(Schedule, WarmsUpLinearlyThenFollowsItsKind) {
  Schedule schedule{.kind = ScheduleKind::kCosine, .rate = 1.0, .min_rate = 0.1, .warmup = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.0);
  EXPECT_NEAR(schedule.at(60), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0.1);
  schedule.kind = ScheduleKind::kLinear;
  EXPECT_NEAR(schedule.at(35), 1.0 - 0.9 * 0.25, 1e-12);
  schedule.kind = ScheduleKind::kConstant;
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(109), 1.0);
}

TEST(Schedule, WsdStaysConstantUntilItsCooldown) {
  const Schedule schedule{
      .kind = ScheduleKind::kWsd, .rate = 1.0, .min_rate = 0.1, .warmup = 10, .steps = 100, .cooldown = 0.4};
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.5);
  for (const uint64_t step : {10, 11, 59, 60}) EXPECT_DOUBLE_EQ(schedule.at(step), 1.0) << step;
  EXPECT_NEAR(schedule.at(80), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.1);
}

// A run that is extended during its stable phase has had the rates of the longer run all along.
TEST(Schedule, WsdOfALongerRunAgreesInTheStablePhase) {
  Schedule schedule{
      .kind = ScheduleKind::kWsd, .rate = 1.0, .min_rate = 0, .warmup = 10, .steps = 100, .cooldown = 0.4};
  Schedule longer = schedule;
  longer.steps = 300;
  for (uint64_t step = 1; step <= 60; ++step) EXPECT_EQ(schedule.at(step), longer.at(step)) << step;
  EXPECT_LT(schedule.at(61), longer.at(61));
}

TEST(Schedule, WsdWithoutACooldownIsConstant) {
  const Schedule schedule{.kind = ScheduleKind::kWsd, .rate = 1.0, .warmup = 0, .steps = 100, .cooldown = 0};
  EXPECT_DOUBLE_EQ(schedule.at(99), 1.0);
}

TEST(Schedule, WithoutWarmupStartsAtTheRate) {
  const Schedule schedule{.kind = ScheduleKind::kConstant, .rate = 0.5, .warmup = 0};
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.5);
}

TEST(Schedule, NeverRisesAfterWarmup) {
  for (const ScheduleKind kind : {ScheduleKind::kCosine, ScheduleKind::kLinear, ScheduleKind::kWsd}) {
    const Schedule schedule{.kind = kind, .rate = 3e-3, .min_rate = 0, .warmup = 7, .steps = 50};
    for (uint64_t step = 8; step < 60; ++step) EXPECT_LE(schedule.at(step), schedule.at(step - 1)) << step;
  }
}

}  // namespace
}  // namespace quern
