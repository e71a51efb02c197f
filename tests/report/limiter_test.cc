#include "report/limiter.h"

#include <gtest/gtest.h>

namespace quern::report {
namespace {

// A second of two threads with a peak of 100 GFLOPS together; a token is 1 MFLOP.
train::StepReport second(uint64_t tokens, WaitTimes waits = {}, double data_wait = 0) {
  return {.tokens = tokens, .seconds = 1, .threads = 2, .waits = waits, .data_wait = data_wait, .cpu_seconds = {}};
}

std::string_view limit(const train::StepReport& report, double peak = 100) {
  Limiter limiter(1e6, peak);
  limiter.add(report);
  return limiter.name();
}

TEST(Limiter, ComputeFromHalfOfThePeak) {
  EXPECT_EQ(limit(second(50'000)), "compute");
  EXPECT_EQ(limit(second(49'000)), "memory");
  EXPECT_EQ(limit(second(46'000, {.tickets = 0.18})), "compute");  // in the 91 % of the time that was work
}

TEST(Limiter, WaitingFromATenthOfTheWorkersTime) {
  EXPECT_EQ(limit(second(80'000, {.tickets = 0.1, .team = 0.05, .queue = 0.06})), "waiting");
  EXPECT_EQ(limit(second(80'000, {.tickets = 0.1, .team = 0.05, .queue = 0.04})), "compute");
}

// Else a machine that is busy with something else would look like slow memory.
TEST(Limiter, WaitingWhereOtherProgramsHaveTheCores) {
  train::StepReport report = second(20'000, {.queue = 0.1});
  report.cpu_seconds = 1.6;  // of the 1.9 that the workers believe to have worked
  EXPECT_EQ(limit(report), "waiting");
  report.cpu_seconds = 1.85;
  EXPECT_EQ(limit(report), "memory");
  report.cpu_seconds = 2.5;  // other threads of the process
  EXPECT_EQ(limit(report), "memory");
}

TEST(Limiter, DataWhereWorkersIdleBecauseBatchesAreMissing) {
  EXPECT_EQ(limit(second(10'000, {.queue = 0.4}, 0.15)), "data");
  EXPECT_EQ(limit(second(10'000, {.queue = 0.4}, 0.05)), "waiting");
  EXPECT_EQ(limit(second(80'000, {}, 0.9)), "compute");  // the workers had enough to do meanwhile
}

TEST(Limiter, OnlyWaitsAreKnownWithoutAPeak) {
  EXPECT_EQ(limit(second(80'000), 0), "");
  EXPECT_EQ(limit(second(80'000, {.team = 1}), 0), "waiting");
  EXPECT_EQ(Limiter(1e6, 100).name(), "");
}

TEST(Limiter, FollowsTheLastSteps) {
  Limiter limiter(1e6, 100);
  for (int i = 0; i < 100; ++i) limiter.add(second(80'000));
  limiter.add(second(80'000, {.queue = 1}, 0.5));
  EXPECT_EQ(limiter.name(), "compute");  // one step is no reason
  for (int i = 0; i < 10; ++i) limiter.add(second(80'000, {.queue = 1}, 0.5));
  EXPECT_EQ(limiter.name(), "data");
}

}  // namespace
}  // namespace quern::report
