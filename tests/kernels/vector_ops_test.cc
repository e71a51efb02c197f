#include "kernels/vector_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

const std::vector<size_t> kSizes = {0,  1,   2,   3,   4,   7,    8,    15,   16,   17,   31,   33,
                                    63, 100, 127, 128, 129, 1000, 4095, 4096, 4097, 8191, 8192, 16400};
const std::vector<float> kNotFinite = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                       std::numeric_limits<float>::quiet_NaN(),
                                       std::numeric_limits<float>::signaling_NaN()};

TEST(VectorOps, AccumulateAddsEveryElementOnce) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : kSizes) {
      const test::Placed x(test::normal(n, 1), n % 16);
      test::Placed sum(test::normal(n, 2), (n + 3) % 16);
      std::vector<float> expected = sum.copy();
      for (size_t i = 0; i < n; ++i) expected[i] += x.data()[i];
      accumulate(sum.data(), x.data(), n);
      EXPECT_TRUE(test::same_bits(expected, sum.span())) << "n " << n;
    }
  });
}

TEST(VectorOps, ScaleMultipliesEveryElementOnce) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : kSizes) {
      for (const float factor : {0.3f, -0.0f, 1e30f}) {
        test::Placed x(test::normal(n, 3, 1e9f), (n + 5) % 16);
        std::vector<float> expected = x.copy();
        for (float& value : expected) value *= factor;
        scale(x.data(), factor, n);
        EXPECT_TRUE(test::same_bits(expected, x.span())) << "n " << n << " factor " << factor;
      }
    }
  });
}

TEST(VectorOps, NotFiniteValuesSpread) {
  test::for_each_target([&](const Target&) {
    for (const float bad : kNotFinite) {
      std::vector<float> x(37, 1.0f), sum(37, 2.0f);
      x[5] = x[36] = bad;
      accumulate(sum.data(), x.data(), x.size());
      scale(x.data(), 0.5f, x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(std::isfinite(sum[i]), i != 5 && i != 36) << i;
        EXPECT_EQ(std::isfinite(x[i]), i != 5 && i != 36) << i;
      }
      EXPECT_FALSE(std::isfinite(squared_norm(x.data(), x.size())));
    }
  });
}

double twin_squared_norm(const float* x, size_t n) {
  double total = 0;
  for (size_t begin = 0; begin < n; begin += 4096) {
    twin::Lanes lanes;
    for (size_t i = begin; i < std::min(n, begin + 4096); ++i) lanes.at(i) = std::fma(x[i], x[i], lanes.at(i));
    total += static_cast<double>(lanes.sum());
  }
  return total;
}

TEST(VectorOps, SquaredNormMatchesItsTwinBitForBit) {
  std::vector<size_t> sizes = kSizes;
  sizes.insert(sizes.end(), {4 * 4096 - 1, 4 * 4096, 5 * 4096 + 1, 9 * 4096 + 17});
  test::for_each_target([&](const Target& target) {
    for (const size_t n : sizes) {
      const test::Placed x(test::normal(n, static_cast<unsigned>(n), 0.1f), (n + 1) % 16);
      double expected = 0;
      for (const float value : x.copy()) expected += static_cast<double>(value) * static_cast<double>(value);
      const double found = squared_norm(x.data(), n);
      EXPECT_NEAR(found, expected, 1e-6 * expected) << "n " << n;
      if (!target.fma) continue;
      EXPECT_EQ(found, twin_squared_norm(x.data(), n)) << "n " << n;
    }
  });
}

// 2^24 ones: a single fp32 sum would stop there, blocks of 4,096 do not.
TEST(VectorOps, SquaredNormOfALongArrayIsExact) {
  const std::vector<float> ones((size_t{1} << 24) + 4101, 1.0f);
  test::for_each_target([&](const Target& target) {
    if (target.name == "scalar") return;  // the same code with another width; slow
    EXPECT_EQ(squared_norm(ones.data(), ones.size()), static_cast<double>(ones.size()));
  });
}

TEST(VectorOps, AllFiniteFindsOneBadValue) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : {size_t{1}, size_t{5}, size_t{16}, size_t{33}, size_t{150}}) {
      for (size_t place = 0; place < n; ++place) {
        test::Placed x(n, std::numeric_limits<float>::max(), place % 16);
        ASSERT_TRUE(all_finite(x.data(), n));
        for (const float bad : kNotFinite) {
          x[place] = bad;
          ASSERT_FALSE(all_finite(x.data(), n)) << "place " << place << " of " << n;
        }
      }
    }
    std::vector<float> x(3 * 4096 + 5, -1e-45f);
    ASSERT_TRUE(all_finite(x.data(), x.size()));
    for (size_t place = 0; place < x.size(); place += 61) {
      x[place] = kNotFinite[place % 4];
      ASSERT_FALSE(all_finite(x.data(), x.size())) << place;
      x[place] = 0.0f;
    }
    EXPECT_TRUE(all_finite(nullptr, 0));
  });
}

}  // namespace
}  // namespace quern::kernels
