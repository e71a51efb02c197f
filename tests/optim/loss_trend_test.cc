#include "optim/loss_trend.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quern {
namespace {

TEST(LossTrend, JudgesNothingBeforeItHasSeenEnough) {
  LossTrend trend;
  for (uint64_t i = 0; i < LossTrend::kEnough; ++i) {
    EXPECT_EQ(trend.z(1000), 0) << i;
    trend.add(2 + 0.1 * static_cast<double>(i % 2));
  }
  EXPECT_GT(trend.z(1000), 100);
}

TEST(LossTrend, IsMeanAndVarianceOfAllLossesAtFirst) {
  LossTrend trend;
  double sum = 0, squares = 0;
  for (int i = 0; i < 50; ++i) {
    const double loss = 3 + std::sin(i);
    trend.add(loss);
    sum += loss;
    squares += loss * loss;
  }
  EXPECT_NEAR(trend.mean, sum / 50, 1e-12);
  EXPECT_NEAR(trend.variance, squares / 50 - sum * sum / 2500, 1e-12);
  EXPECT_NEAR(trend.z(trend.mean + 2 * std::sqrt(trend.variance)), 2, 1e-12);
  EXPECT_LT(trend.z(trend.mean - 1), 0);
}

TEST(LossTrend, ForgetsWhatIsLongAgo) {
  LossTrend trend;
  for (int i = 0; i < 100; ++i) trend.add(10);
  for (int i = 0; i < 1000; ++i) trend.add(1);
  EXPECT_NEAR(trend.mean, 1, 1e-3);
}

// A loss that hardly moves: a rise of a hundredth is one deviation, not a spike.
TEST(LossTrend, AssumesSomeNoise) {
  LossTrend trend;
  for (int i = 0; i < 200; ++i) trend.add(2);
  EXPECT_NEAR(trend.z(2.02), 1, 1e-9);
}

}  // namespace
}  // namespace quern
