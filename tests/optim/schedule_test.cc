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

TEST(Schedule, WithoutWarmupStartsAtTheRate) {
  const Schedule schedule{.kind = ScheduleKind::kConstant, .rate = 0.5, .warmup = 0};
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.5);
}

TEST(Schedule, NeverRisesAfterWarmup) {
  for (const ScheduleKind kind : {ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    const Schedule schedule{.kind = kind, .rate = 3e-3, .min_rate = 0, .warmup = 7, .steps = 50};
    for (uint64_t step = 8; step < 60; ++step) EXPECT_LE(schedule.at(step), schedule.at(step - 1)) << step;
  }
}

}  // namespace
}  // namespace quern
