#include "kernels/tensor_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/vector_ops.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

constexpr size_t kBlock = 4096;
const std::vector<size_t> kSizes = {0,   1,   2,    15,   16,   17,   31,       33,           100,           127,
                                    128, 129, 4095, 4096, 4097, 8191, 2 * 4096, 2 * 4096 + 1, 3 * 4096 + 17, 5 * 4096};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TensorStats twin_stats(const float* x, size_t n) {
  TensorStats stats;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    twin::Lanes sum, squares;
    for (size_t i = begin; i < std::min(n, begin + kBlock); ++i) {
      sum.at(i) += x[i];
      squares.at(i) = std::fma(x[i], x[i], squares.at(i));
      stats.zeros += x[i] == 0.0f ? 1 : 0;
      stats.largest = std::max(stats.largest, std::abs(x[i]));
    }
    stats.sum += static_cast<double>(sum.sum());
    stats.squares += static_cast<double>(squares.sum());
  }
  return stats;
}

double twin_distance(const float* a, const float* b, size_t n) {
  double total = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    twin::Lanes sum;
    for (size_t i = begin; i < std::min(n, begin + kBlock); ++i)
      sum.at(i) = std::fma(a[i] - b[i], a[i] - b[i], sum.at(i));
    total += static_cast<double>(sum.sum());
  }
  return total;
}

// Some of them zero, of either sign.
std::vector<float> with_zeros(size_t n, unsigned seed) {
  std::vector<float> values = test::normal(n, seed, 0.3f);
  for (size_t i = seed % 3; i < n; i += 3) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
  return values;
}

TEST(TensorStats, MatchTheirTwinBitForBit) {
  test::for_each_target([&](const Target& target) {
    for (const size_t n : kSizes) {
      const test::Placed x(with_zeros(n, static_cast<unsigned>(n)), (n + 1) % 16);
      const TensorStats expected = twin_stats(x.data(), n), found = tensor_stats(x.data(), n);
      EXPECT_EQ(found.zeros, expected.zeros) << "n " << n;
      EXPECT_EQ(found.largest, expected.largest) << "n " << n;
      EXPECT_EQ(found.squares, squared_norm(x.data(), n)) << "n " << n;
      EXPECT_NEAR(found.sum, expected.sum, 1e-4) << "n " << n;
      EXPECT_NEAR(found.squares, expected.squares, 1e-6 * expected.squares) << "n " << n;
      if (!target.fma) continue;
      EXPECT_EQ(found.sum, expected.sum) << "n " << n;
      EXPECT_EQ(found.squares, expected.squares) << "n " << n;
    }
  });
}

TEST(TensorStats, AreCloseToThoseInDoublePrecision) {
  test::for_each_target([&](const Target&) {
    const std::vector<float> x = with_zeros(100'003, 7);
    double sum = 0, squares = 0;
    for (const float value : x) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const TensorStats found = tensor_stats(x.data(), x.size());
    EXPECT_NEAR(found.sum, sum, 1e-3);
    EXPECT_NEAR(found.squares, squares, 1e-6 * squares);
    EXPECT_EQ(found.zeros, static_cast<uint64_t>(std::count(x.begin(), x.end(), 0.0f)));
  });
}

TEST(TensorStats, OneNonFiniteValueIsTheLargest) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : {size_t{1}, size_t{16}, size_t{37}, 2 * kBlock + 21}) {
      for (size_t place = 0; place<n; place += n> 100 ? 97 : 1) {
        test::Placed x(n, std::numeric_limits<float>::max(), place % 16);
        ASSERT_EQ(tensor_stats(x.data(), n).largest, std::numeric_limits<float>::max());
        x[place] = -kInfinity;
        ASSERT_EQ(tensor_stats(x.data(), n).largest, kInfinity) << place << " of " << n;
        x[place] = -kNan;
        ASSERT_TRUE(std::isnan(tensor_stats(x.data(), n).largest)) << place << " of " << n;
        if (n > 1) x[place == 0 ? n - 1 : 0] = kInfinity;
        ASSERT_TRUE(std::isnan(tensor_stats(x.data(), n).largest)) << place << " of " << n;
      }
    }
  });
}

TEST(TensorStats, TinyNumbersAreNotZeros) {
  test::for_each_target([&](const Target&) {
    const std::vector<float> x(kBlock + 3, std::numeric_limits<float>::denorm_min());
    const TensorStats found = tensor_stats(x.data(), x.size());
    EXPECT_EQ(found.zeros, 0u);
    EXPECT_EQ(found.largest, std::numeric_limits<float>::denorm_min());
  });
}

TEST(SquaredDistance, MatchesItsTwinBitForBit) {
  test::for_each_target([&](const Target& target) {
    for (const size_t n : kSizes) {
      const test::Placed a(test::normal(n, 1), (n + 5) % 16), b(test::normal(n, 2), n % 16);
      const double expected = twin_distance(a.data(), b.data(), n), found = squared_distance(a.data(), b.data(), n);
      EXPECT_NEAR(found, expected, 1e-6 * expected) << "n " << n;
      EXPECT_EQ(squared_distance(a.data(), a.data(), n), 0.0);
      if (!target.fma) continue;
      EXPECT_EQ(found, expected) << "n " << n;
    }
  });
}

}  // namespace
}  // namespace quern::kernels
