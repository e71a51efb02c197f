#include "kernels/cross_entropy.h"

#include <cmath>
#include <limits>
#include <vector>

#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

using test::Placed;

const std::vector<size_t> kWidths = {1, 2, 15, 16, 17, 31, 33, 96, 100, 129, 1000};

struct Row {
  float loss;
  std::vector<float> gradient;
};

// The order of operations that cross_entropy.cc promises, one element at a time.
Row twin_row(const std::vector<float>& logits, size_t target, float scale) {
  twin::Lanes max(-std::numeric_limits<float>::infinity());
  for (size_t j = 0; j < logits.size(); ++j) max.at(j) = max.at(j) < logits[j] ? logits[j] : max.at(j);
  const float shift = max.max();
  twin::Lanes lanes;
  Row row;
  for (size_t j = 0; j < logits.size(); ++j) {
    row.gradient.push_back(twin::exp(logits[j] - shift));
    lanes.at(j) += row.gradient.back();
  }
  const float sum = lanes.sum();
  row.loss = static_cast<float>(std::log(static_cast<double>(sum)) + static_cast<double>(shift) -
                                static_cast<double>(logits[target]));
  for (float& g : row.gradient) g *= scale / sum;
  row.gradient[target] -= scale;
  return row;
}

double reference_loss(const std::vector<double>& logits, size_t target) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - max);
  return std::log(sum) + max - logits[target];
}

TEST(CrossEntropy, EqualsTheTwin) {
  for (const size_t V : kWidths) {
    SCOPED_TRACE("V = " + std::to_string(V));
    const size_t rows = 3, stride = V + 1;
    const std::vector<float> logits = test::normal(rows * stride, static_cast<unsigned>(V), 3.0f);
    const int32_t targets[] = {0, static_cast<int32_t>(V / 2), static_cast<int32_t>(V - 1)};
    test::for_each_target([&](const Target& target) {
      Placed found(logits, V % 5);
      Placed losses(rows, 0.0f, 1);
      cross_entropy(found.data(), stride, targets, rows, V, 0.25f, losses.data(), true);
      for (size_t r = 0; r < rows; ++r) {
        const std::vector<float> row(logits.begin() + static_cast<long>(r * stride),
                                     logits.begin() + static_cast<long>(r * stride + V));
        const Row expected = twin_row(row, static_cast<size_t>(targets[r]), 0.25f);
        const std::span<const float> gradient(found.data() + r * stride, V);
        if (target.fma) {
          EXPECT_EQ(losses[r], expected.loss);
          EXPECT_TRUE(test::same_bits(expected.gradient, gradient));
        }
        EXPECT_NEAR(losses[r], expected.loss, 1e-5);
        EXPECT_TRUE(test::close(expected.gradient, gradient, 1e-6));
        EXPECT_EQ(found[r * stride + V], logits[r * stride + V]) << "the gap after a row was written";
      }
    });
  }
}

TEST(CrossEntropy, GradientMatchesFiniteDifferences) {
  for (const size_t V : {1, 5, 17, 40}) {
    const std::vector<float> logits = test::normal(V, 3, 2.0f);
    const int32_t target = static_cast<int32_t>(V / 3);
    std::vector<double> precise(logits.begin(), logits.end());
    test::for_each_target([&](const Target&) {
      std::vector<float> found = logits;
      float loss = 0;
      cross_entropy(found.data(), V, &target, 1, V, 1.0f, &loss, true);
      EXPECT_NEAR(loss, reference_loss(precise, V / 3), 1e-5);
      for (size_t j = 0; j < V; ++j) {
        const double slope = test::derivative([&] { return reference_loss(precise, V / 3); }, precise[j]);
        EXPECT_NEAR(found[j], slope, 1e-5) << "element " << j;
      }
    });
  }
}

TEST(CrossEntropy, LossAloneDoesNotTouchTheLogits) {
  const std::vector<float> logits = test::normal(2 * 50, 4);
  const int32_t targets[] = {7, 49};
  test::for_each_target([&](const Target&) {
    std::vector<float> with = logits, without = logits, a(2), b(2);
    cross_entropy(with.data(), 50, targets, 2, 50, 1.0f, a.data(), true);
    cross_entropy(without.data(), 50, targets, 2, 50, 1.0f, b.data(), false);
    EXPECT_TRUE(test::same_bits(logits, without));
    EXPECT_TRUE(test::same_bits(a, b));
  });
}

TEST(CrossEntropy, IgnoredRowsHaveNoLossAndNoGradient) {
  test::for_each_target([](const Target&) {
    std::vector<float> logits = test::normal(2 * 20, 5);
    const int32_t targets[] = {kIgnoreTarget, 3};
    float losses[2] = {9, 9};
    cross_entropy(logits.data(), 20, targets, 2, 20, 1.0f, losses, true);
    EXPECT_EQ(losses[0], 0.0f);
    for (size_t j = 0; j < 20; ++j) EXPECT_EQ(logits[j], 0.0f);
    EXPECT_GT(losses[1], 0.0f);
  });
}

TEST(CrossEntropy, ExtremeLogitsStayFiniteAndNaNShows) {
  test::for_each_target([](const Target&) {
    std::vector<float> logits = {1e30f, -1e30f, 0.0f, 88.0f, -3e38f};
    const int32_t target = 0;
    float loss = -1;
    cross_entropy(logits.data(), 5, &target, 1, 5, 1.0f, &loss, true);
    EXPECT_EQ(loss, 0.0f);
    for (const float g : logits) EXPECT_EQ(g, 0.0f);
    std::vector<float> sick = test::normal(40, 6);
    sick[33] = std::nanf("");
    cross_entropy(sick.data(), 40, &target, 1, 40, 1.0f, &loss, true);
    EXPECT_TRUE(std::isnan(loss));
  });
}

// ---- capped logits

constexpr float kCaps[] = {0.5f, 15.0f, 30.0f};

Row capped_twin_row(const std::vector<float>& logits, size_t target, float scale, float cap) {
  const auto tanh = [&](float z) { return twin::cap_tanh(z, cap); };
  const float shift = cap * tanh(*std::max_element(logits.begin(), logits.end()));
  twin::Lanes lanes;
  Row row;
  for (size_t j = 0; j < logits.size(); ++j) {
    const float t = tanh(logits[j]), e = twin::exp(cap * t - shift);
    lanes.at(j) += e;
    row.gradient.push_back(e * std::fma(-t, t, 1.0f));
  }
  const float sum = lanes.sum(), t = tanh(logits[target]);
  row.loss = static_cast<float>(std::log(static_cast<double>(sum)) + static_cast<double>(shift) -
                                static_cast<double>(cap * t));
  for (float& g : row.gradient) g *= scale / sum;
  row.gradient[target] -= scale * std::fma(-t, t, 1.0f);
  return row;
}

double capped_reference_loss(std::vector<double> logits, size_t target, double cap) {
  for (double& z : logits) z = cap * std::tanh(z / cap);
  return reference_loss(logits, target);
}

std::vector<float> capped(const std::vector<float>& logits, float cap, size_t offset = 0) {
  Placed values(logits, offset);
  soft_cap(values.data(), logits.size(), cap);
  return values.copy();
}

TEST(SoftCap, MatchesTwinAndReference) {
  std::vector<float> logits;
  for (int i = -3000; i <= 3000; ++i) logits.push_back(static_cast<float>(i) * 0.037f);
  for (float tiny = 1e-30f; tiny < 1.0f; tiny *= 1.7f) logits.insert(logits.end(), {tiny, -tiny});
  for (const float huge : {1e3f, 1e10f, 3e38f}) logits.insert(logits.end(), {huge, -huge});
  for (const float cap : kCaps) {
    std::vector<float> exact;
    for (const float z : logits) exact.push_back(cap * twin::cap_tanh(z, cap));
    test::for_each_target([&](const Target& target) {
      const std::vector<float> found = capped(logits, cap, 3);
      if (target.fma) {
        EXPECT_TRUE(test::same_bits(exact, found));
      }
      for (size_t i = 0; i < logits.size(); ++i) {
        const double c = static_cast<double>(cap), y = c * std::tanh(static_cast<double>(logits[i]) / c);
        EXPECT_NEAR(found[i], y, 5e-7 * std::abs(y)) << "z = " << logits[i];
        EXPECT_LE(std::abs(found[i]), cap);
      }
    });
  }
}

TEST(SoftCap, EverySizeAndAlignment) {
  test::for_each_target([](const Target&) {
    for (const size_t n : {0, 1, 3, 4, 8, 15, 16, 17, 31, 33, 100}) {
      const std::vector<float> logits = test::normal(n, 8, 20.0f), first = capped(logits, 15.0f);
      for (const size_t offset : {1, 5, 15}) EXPECT_TRUE(test::same_bits(first, capped(logits, 15.0f, offset)));
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(first[i], capped({logits[i]}, 15.0f)[0]);
      EXPECT_TRUE(test::same_bits(logits, capped(logits, 0.0f))) << "no cap";
    }
  });
}

TEST(SoftCap, InfinityBecomesTheCapAndNanStays) {
  const float infinity = std::numeric_limits<float>::infinity();
  test::for_each_target([&](const Target&) {
    const std::vector<float> found = capped({infinity, -infinity, std::nanf(""), 0.0f}, 15.0f);
    EXPECT_EQ(found[0], 15.0f);
    EXPECT_EQ(found[1], -15.0f);
    EXPECT_TRUE(std::isnan(found[2]));
    EXPECT_EQ(found[3], 0.0f);
  });
}

TEST(CrossEntropy, CappedEqualsTheTwin) {
  for (const size_t V : kWidths) {
    for (const float cap : kCaps) {
      SCOPED_TRACE("V = " + std::to_string(V) + ", cap " + std::to_string(cap));
      const size_t rows = 3, stride = V + 1;
      const std::vector<float> logits = test::normal(rows * stride, static_cast<unsigned>(V), 10.0f);
      const int32_t targets[] = {0, static_cast<int32_t>(V / 2), static_cast<int32_t>(V - 1)};
      test::for_each_target([&](const Target& target) {
        Placed found(logits, V % 5);
        Placed losses(rows, 0.0f, 1);
        cross_entropy(found.data(), stride, targets, rows, V, 0.25f, losses.data(), true, cap);
        for (size_t r = 0; r < rows; ++r) {
          const std::vector<float> row(logits.begin() + static_cast<long>(r * stride),
                                       logits.begin() + static_cast<long>(r * stride + V));
          const Row expected = capped_twin_row(row, static_cast<size_t>(targets[r]), 0.25f, cap);
          const std::span<const float> gradient(found.data() + r * stride, V);
          if (target.fma) {
            EXPECT_EQ(losses[r], expected.loss);
            EXPECT_TRUE(test::same_bits(expected.gradient, gradient));
          }
          EXPECT_NEAR(losses[r], expected.loss, 1e-5);
          EXPECT_TRUE(test::close(expected.gradient, gradient, 1e-6));
          EXPECT_EQ(found[r * stride + V], logits[r * stride + V]) << "the gap after a row was written";
        }
      });
    }
  }
}

// The loss of capped logits is that of soft_cap()'s output: generation and training see the same distribution.
TEST(CrossEntropy, CappedLossIsThatOfSoftCap) {
  const std::vector<float> logits = test::normal(100, 9, 20.0f);
  const int32_t target = 70;
  test::for_each_target([&](const Target&) {
    std::vector<float> plain = capped(logits, 15.0f), untouched = logits, with = logits;
    float expected = 0, found = 0, with_gradient = 0;
    cross_entropy(plain.data(), 100, &target, 1, 100, 1.0f, &expected, false);
    cross_entropy(untouched.data(), 100, &target, 1, 100, 1.0f, &found, false, 15.0f);
    cross_entropy(with.data(), 100, &target, 1, 100, 1.0f, &with_gradient, true, 15.0f);
    EXPECT_FLOAT_EQ(found, expected);
    EXPECT_EQ(found, with_gradient);
    EXPECT_TRUE(test::same_bits(logits, untouched));
  });
}

TEST(CrossEntropy, CappedGradientMatchesFiniteDifferences) {
  for (const size_t V : {1, 5, 17, 40}) {
    for (const float cap : kCaps) {
      const std::vector<float> logits = test::normal(V, 3, 2.0f);
      const int32_t target = static_cast<int32_t>(V / 3);
      std::vector<double> precise(logits.begin(), logits.end());
      const auto reference = [&] { return capped_reference_loss(precise, V / 3, static_cast<double>(cap)); };
      test::for_each_target([&](const Target&) {
        std::vector<float> found = logits;
        float loss = 0;
        cross_entropy(found.data(), V, &target, 1, V, 1.0f, &loss, true, cap);
        EXPECT_NEAR(loss, reference(), 1e-5);
        for (size_t j = 0; j < V; ++j) {
          EXPECT_NEAR(found[j], test::derivative(reference, precise[j]), 1e-5) << "element " << j;
        }
      });
    }
  }
}

TEST(CrossEntropy, CappedExtremeLogitsStayFiniteAndNaNShows) {
  const float infinity = std::numeric_limits<float>::infinity();
  test::for_each_target([&](const Target&) {
    std::vector<float> logits = {1e30f, -1e30f, 0.0f, infinity, -infinity};
    const int32_t target = 1;
    float loss = -1;
    cross_entropy(logits.data(), 5, &target, 1, 5, 1.0f, &loss, true, 15.0f);
    EXPECT_NEAR(loss, 30.0f + std::log(2.0f), 1e-4);
    for (const float g : logits) EXPECT_TRUE(std::isfinite(g));
    std::vector<float> sick = test::normal(40, 6);
    sick[33] = std::nanf("");
    cross_entropy(sick.data(), 40, &target, 1, 40, 1.0f, &loss, true, 15.0f);
    EXPECT_TRUE(std::isnan(loss));
  });
}

}  // namespace
}  // namespace quern::kernels
