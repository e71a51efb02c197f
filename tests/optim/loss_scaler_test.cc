#include "optim/loss_scaler.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(LossScaler, HalvesOnOverflowAndDoublesAfterAThousandCleanSteps) {
  LossScaler scaler(true);
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.step_done(true);
  EXPECT_EQ(scaler.scale(), 32768);
  for (int i = 0; i < 999; ++i) scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 32768);
  scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.clean_steps(), 0u);
}

TEST(LossScaler, AnOverflowStartsTheCountAnew) {
  LossScaler scaler(true);
  for (int i = 0; i < 999; ++i) scaler.step_done(false);
  scaler.step_done(true);
  scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaler.clean_steps(), 1u);
}

TEST(LossScaler, NeverFallsBelowOne) {
  LossScaler scaler(true);
  for (int i = 0; i < 100; ++i) scaler.step_done(true);
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, GoesOnWhereACheckpointWasWritten) {
  LossScaler first(true), second(true);
  for (int i = 0; i < 500; ++i) first.step_done(i == 3);
  second.resume(first.scale(), first.clean_steps());
  for (int i = 0; i < 600; ++i) {
    first.step_done(false);
    second.step_done(false);
  }
  EXPECT_EQ(first.scale(), second.scale());
  EXPECT_EQ(first.clean_steps(), second.clean_steps());
}

TEST(LossScaler, InactiveIsAlwaysOne) {
  LossScaler scaler(false);
  scaler.step_done(true);
  scaler.resume(65536, 5);
  EXPECT_EQ(scaler.scale(), 1);
}

}  // namespace
}  // namespace quern
