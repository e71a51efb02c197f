#include "optim/adamw.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/vector_ops.h"
#include "nn/models/language_model.h"
#include "support/support.h"

namespace quern {
namespace {

const nn::ModelConfig kConfig{.layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = 5000};

UpdateReport update(Optimizer& optimizer, const nn::ParameterTable& layout, std::vector<float>& weights,
                    const std::vector<float>& gradient, double rate, uint64_t step) {
  double squares = 0;
  for (const nn::Segment& s : layout.segments()) squares += kernels::squared_norm(gradient.data() + s.offset, s.size);
  const UpdateReport report = optimizer.begin(squares, rate, step);
  if (!report.finite) return report;
  for (size_t i = 0; i < optimizer.units().size(); ++i) optimizer.update(i, 0, weights, gradient);
  return report;
}

// The formula in double precision, with decay on matrices only and the gradient clipped by its global norm.
TEST(Optimizer, FollowsTheFormulaOverSeveralSteps) {
  const nn::Declaration model = nn::declare(kConfig);
  const nn::ParameterTable& layout = model.parameters;
  const OptimizerOptions options{.weight_decay = 0.3f, .clip = 2.0f};
  AdamW optimizer(layout, options);
  std::vector<float> weights = test::normal(layout.size(), 1), gradient(layout.size());
  std::vector<double> p(weights.begin(), weights.end()), m(layout.size()), v(layout.size());
  for (uint64_t step = 1; step <= 5; ++step) {
    double squares = 0;
    for (const nn::Parameter& tensor : layout.all()) {
      const std::vector<float> values = test::normal(tensor.size, static_cast<unsigned>(step), 0.01f);
      for (size_t i = 0; i < tensor.size; ++i) {
        gradient[tensor.offset + i] = values[i];
        squares += static_cast<double>(values[i]) * values[i];
      }
    }
    const UpdateReport report = update(optimizer, layout, weights, gradient, 1e-2, step);
    EXPECT_TRUE(report.finite);
    EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-5 * std::sqrt(squares));
    const double clip = std::min(1.0, 2.0 / std::sqrt(squares)), t = static_cast<double>(step);
    ASSERT_LT(clip, 1.0) << "the test must clip";
    for (const nn::Parameter& tensor : layout.all()) {
      for (size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
        const double g = gradient[i] * clip;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        const double root = std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-8;
        p[i] -= 1e-2 * (m[i] / (1 - std::pow(0.9, t)) / root + (tensor.shape.size() > 1 ? 0.3 : 0.0) * p[i]);
      }
    }
  }
  for (const nn::Parameter& tensor : layout.all()) {
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) ASSERT_NEAR(weights[i], p[i], 2e-5) << i;
  }
}

TEST(Optimizer, AGradientThatIsNotFiniteChangesNothing) {
  const nn::Declaration model = nn::declare(kConfig);
  const nn::ParameterTable& layout = model.parameters;
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    AdamW optimizer(layout, {});
    std::vector<float> weights = test::normal(layout.size(), 1), gradient = test::normal(layout.size(), 2);
    const std::vector<float> before = weights;
    gradient[layout.all().back().offset] = bad;
    EXPECT_FALSE(update(optimizer, layout, weights, gradient, 1e-2, 1).finite);
    EXPECT_TRUE(test::same_bits(before, weights));
    for (const OptimizerState& state : optimizer.states()) {
      for (const float x : state.values.span()) ASSERT_EQ(x, 0.0f) << state.name;
    }
  }
}

TEST(Optimizer, NoLimitMeansNoClipping) {
  const nn::Declaration model = nn::declare(kConfig);
  const nn::ParameterTable& layout = model.parameters;
  std::vector<float> gradient = test::normal(layout.size(), 2, 10.0f);
  std::vector<float> small = test::normal(layout.size(), 1), large = small;
  AdamW limited(layout, {.clip = 1e9f}), unlimited(layout, {.clip = 0.0f});
  update(limited, layout, small, gradient, 1e-3, 1);
  update(unlimited, layout, large, gradient, 1e-3, 1);
  EXPECT_TRUE(test::same_bits(small, large));
}

}  // namespace
}  // namespace quern
