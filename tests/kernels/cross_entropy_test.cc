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

}  // namespace
}  // namespace quern::kernels
