#include "kernels/soft_cross_entropy.h"

#include <cmath>
#include <limits>
#include <vector>

#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

using test::Placed;

const std::vector<size_t> kWidths = {1, 2, 3, 7, 15, 16, 17, 33, 100, 129, 1000};

// Shares that sum to `sum`, where about a third of the elements do not exist.
std::vector<float> targets_of(size_t V, unsigned seed, float sum = 1.0f) {
  std::vector<float> t = test::normal(V, seed);
  for (float& share : t) share = share < -0.4f ? -1.0f : std::abs(share);
  t[V / 2] = 0.25f;  // one exists
  float total = 0;
  for (const float share : t) total += std::max(share, 0.0f);
  for (float& share : t) share = share < 0 ? -1.0f : share * (sum / total);
  return t;
}

struct Row {
  float loss;
  std::vector<float> gradient;
};

// The order of operations of the contract, one element at a time.
Row twin_row(const std::vector<float>& z, const std::vector<float>& t, float scale) {
  const size_t V = z.size();
  float max = -std::numeric_limits<float>::infinity();
  for (size_t j = 0; j < V; ++j) {
    if (!(t[j] < 0) && z[j] > max) max = z[j];
  }
  twin::Lanes exponentials, targets, products;
  Row row{0, std::vector<float>(V, 0.0f)};
  for (size_t j = 0; j < V; ++j) {
    if (t[j] < 0) continue;
    exponentials.at(j) += row.gradient[j] = twin::exp(z[j] - max);
    targets.at(j) += t[j];
    products.at(j) = std::fma(t[j], z[j] - max, products.at(j));
  }
  const float factor = scale * targets.sum() / exponentials.sum();
  for (size_t j = 0; j < V; ++j) {
    row.gradient[j] = std::fma(row.gradient[j], factor, -scale * (t[j] < 0 ? 0.0f : t[j]));
  }
  row.loss = static_cast<float>(targets.sum() * std::log(static_cast<double>(exponentials.sum())) -
                                static_cast<double>(products.sum()));
  return row;
}

double reference_loss(const std::vector<double>& z, const std::vector<float>& t) {
  double sum = 0, loss = 0;
  for (size_t j = 0; j < z.size(); ++j) sum += t[j] < 0 ? 0 : std::exp(z[j]);
  for (size_t j = 0; j < z.size(); ++j) loss += t[j] < 0 ? 0 : static_cast<double>(t[j]) * (std::log(sum) - z[j]);
  return loss;
}

TEST(SoftCrossEntropy, EqualsTheTwin) {
  for (const size_t V : kWidths) {
    SCOPED_TRACE("V = " + std::to_string(V));
    const size_t rows = 3, stride = V + 1;
    const std::vector<float> logits = test::normal(rows * stride, static_cast<unsigned>(V), 3.0f);
    std::vector<float> targets;
    for (unsigned r = 0; r < rows; ++r) {
      const std::vector<float> row = targets_of(V, r + 1, r == 2 ? 0.7f : 1.0f);
      targets.insert(targets.end(), row.begin(), row.end());
    }
    test::for_each_target([&](const Target& target) {
      Placed found(logits, V % 5), shares(targets, V % 3), losses(2 * rows, -7.0f, 1);
      soft_cross_entropy({.logits = found.data(),
                          .logit_stride = stride,
                          .targets = shares.data(),
                          .target_stride = V,
                          .rows = rows,
                          .V = V,
                          .losses = losses.data(),
                          .loss_stride = 2,
                          .scale = 0.25f,
                          .gradient = true});
      for (size_t r = 0; r < rows; ++r) {
        const auto at = [](const std::vector<float>& x, size_t first, size_t n) {
          return std::vector<float>(x.begin() + static_cast<long>(first), x.begin() + static_cast<long>(first + n));
        };
        const Row expected = twin_row(at(logits, r * stride, V), at(targets, r * V, V), 0.25f);
        const std::span<const float> gradient(found.data() + r * stride, V);
        if (target.fma) {
          EXPECT_EQ(losses[2 * r], expected.loss);
          EXPECT_TRUE(test::same_bits(expected.gradient, gradient));
        }
        EXPECT_NEAR(losses[2 * r], expected.loss, 1e-5 * std::max(1.0f, expected.loss));
        EXPECT_TRUE(test::close(expected.gradient, gradient, 1e-6));
        EXPECT_EQ(losses[2 * r + 1], -7.0f) << "the gap after a loss was written";
        EXPECT_EQ(found[r * stride + V], logits[r * stride + V]) << "the gap after a row was written";
      }
    });
  }
}

// Also where the targets do not sum to 1.
TEST(SoftCrossEntropy, GradientMatchesFiniteDifferences) {
  for (const size_t V : {1u, 5u, 17u, 40u}) {
    for (const float sum : {1.0f, 0.6f, 1.3f}) {
      const std::vector<float> logits = test::normal(V, 3, 2.0f), targets = targets_of(V, 4, sum);
      std::vector<double> precise(logits.begin(), logits.end());
      test::for_each_target([&](const Target&) {
        std::vector<float> found = logits;
        float loss = 0;
        soft_cross_entropy(
            {.logits = found.data(), .targets = targets.data(), .rows = 1, .V = V, .losses = &loss, .gradient = true});
        EXPECT_NEAR(loss, reference_loss(precise, targets), 1e-5);
        for (size_t j = 0; j < V; ++j) {
          const double slope = test::derivative([&] { return reference_loss(precise, targets); }, precise[j]);
          EXPECT_NEAR(found[j], slope, 1e-5) << "element " << j;
          if (targets[j] < 0) {
            EXPECT_EQ(found[j], 0.0f);
          }
        }
      });
    }
  }
}

TEST(SoftCrossEntropy, LossAloneDoesNotTouchTheLogits) {
  const std::vector<float> logits = test::normal(50, 4), targets = targets_of(50, 5);
  test::for_each_target([&](const Target&) {
    std::vector<float> with = logits, without = logits;
    float a = 0, b = 1;
    SoftCrossEntropy args{.logits = with.data(), .targets = targets.data(), .rows = 1, .V = 50, .losses = &a};
    args.gradient = true;
    soft_cross_entropy(args);
    args.logits = without.data();
    args.losses = &b;
    args.gradient = false;
    soft_cross_entropy(args);
    EXPECT_TRUE(test::same_bits(logits, without));
    EXPECT_EQ(a, b);
  });
}

// Logits of moves that are not legal are never trained, and may become anything.
TEST(SoftCrossEntropy, ElementsThatDoNotExistHaveNoInfluence) {
  test::for_each_target([](const Target&) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> targets = {0.5f, -1.0f, 0.5f, -1.0f, -1.0f, 0.0f};
    std::vector<float> plain = {1.0f, 0.0f, 2.0f, 0.0f, 0.0f, 3.0f},
                       odd = {1.0f, inf, 2.0f, std::nanf(""), 1e38f, 3.0f};
    float a = 0, b = 1;
    soft_cross_entropy(
        {.logits = plain.data(), .targets = targets.data(), .rows = 1, .V = 6, .losses = &a, .gradient = true});
    soft_cross_entropy(
        {.logits = odd.data(), .targets = targets.data(), .rows = 1, .V = 6, .losses = &b, .gradient = true});
    EXPECT_EQ(a, b);
    // The products 0 * e of the gradient are the only place where such a logit could show.
    for (const size_t j : {0u, 2u, 5u}) EXPECT_EQ(plain[j], odd[j]);
    for (const size_t j : {1u, 3u, 4u}) EXPECT_EQ(odd[j], 0.0f);
  });
}

TEST(SoftCrossEntropy, ExtremeLogitsStayFinite) {
  test::for_each_target([](const Target&) {
    std::vector<float> logits = {1e30f, -1e30f, 0.0f, 88.0f, -3e38f};
    const std::vector<float> targets = {1.0f, 0.0f, 0.0f, -1.0f, 0.0f};
    float loss = -1;
    soft_cross_entropy(
        {.logits = logits.data(), .targets = targets.data(), .rows = 1, .V = 5, .losses = &loss, .gradient = true});
    EXPECT_EQ(loss, 0.0f);
    for (const float g : logits) EXPECT_EQ(g, 0.0f);
  });
}

TEST(SoftCrossEntropy, NanAndRowsWithNothingShow) {
  test::for_each_target([](const Target&) {
    const std::vector<float> logits(40, 1.0f), none(40, -1.0f);
    std::vector<float> targets = targets_of(40, 7), sick = logits, bad = targets;
    sick[20] = std::nanf("");  // exists
    bad[33] = std::nanf("");
    const auto loss_of = [](std::vector<float> z, const std::vector<float>& t) {
      float loss = 0;
      soft_cross_entropy({.logits = z.data(), .targets = t.data(), .rows = 1, .V = 40, .losses = &loss});
      return loss;
    };
    EXPECT_FALSE(std::isnan(loss_of(logits, targets)));
    EXPECT_TRUE(std::isnan(loss_of(sick, targets)));
    EXPECT_TRUE(std::isnan(loss_of(logits, bad)));
    EXPECT_TRUE(std::isnan(loss_of(logits, none)));
  });
}

}  // namespace
}  // namespace quern::kernels
