#include "report/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace quern::report {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Histogram, EveryValueIsWithinItsBucket) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.01f, 0.02f);
  std::vector<float> values(10'001);
  for (float& value : values) value = normal(random);
  const Histogram h = make_histogram(values);
  ASSERT_EQ(h.limits.size(), h.counts.size());
  EXPECT_TRUE(std::is_sorted(h.limits.begin(), h.limits.end()));
  EXPECT_LT(h.limits.size(), 400u);
  size_t seen = 0;
  for (size_t i = 0; i < h.limits.size(); ++i) {
    const double low = i == 0 ? -kInf : h.limits[i - 1], high = h.limits[i];
    const auto inside = [&](float x) { return x < 0 ? x > low && x <= high : x >= low && x < high; };
    EXPECT_EQ(std::count_if(values.begin(), values.end(), inside), h.counts[i]) << i;
    seen += static_cast<size_t>(h.counts[i]);
  }
  EXPECT_EQ(seen, values.size());
  EXPECT_EQ(h.count, 10'001);
  EXPECT_EQ(h.min, *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(h.max, *std::max_element(values.begin(), values.end()));
  EXPECT_NEAR(h.sum, std::accumulate(values.begin(), values.end(), 0.0), 1e-9);
  EXPECT_NEAR(h.squares, std::inner_product(values.begin(), values.end(), values.begin(), 0.0), 1e-6);
}

TEST(Histogram, OneValueIsOneBucket) {
  for (const float value : {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, 3e38f, -3e38f, std::numeric_limits<float>::max()}) {
    const Histogram h = make_histogram(std::vector<float>(5, value));
    ASSERT_EQ(h.counts, std::vector<double>{5}) << value;
    EXPECT_GE(h.limits[0], value);
    EXPECT_EQ(h.min, value);
    EXPECT_EQ(h.max, value);
  }
}

TEST(Histogram, AdjacentEmptyBucketsAreMerged) {
  const Histogram h = make_histogram(std::vector<float>{-100, -100, 0, 2});
  EXPECT_EQ(h.counts, (std::vector<double>{2, 0, 1, 0, 1}));
  EXPECT_EQ(h.limits, (std::vector<double>{-96, -0x1p-24, 0x1p-24, 2, 2.25}));
}

TEST(Histogram, NonFiniteValuesAreCountedSeparately) {
  const Histogram h = make_histogram(std::vector<float>{1, kNan, kInf, -kInf, -kNan, 1});
  EXPECT_EQ(h.count, 2);
  EXPECT_EQ(h.not_finite, 4u);
  EXPECT_EQ(h.sum, 2);
  EXPECT_EQ(h.max, 1);
  const Histogram none = make_histogram(std::vector<float>{kNan});
  EXPECT_EQ(none.count, 0);
  EXPECT_TRUE(none.counts.empty());
  EXPECT_TRUE(make_histogram({}).counts.empty());
}

}  // namespace
}  // namespace quern::report
