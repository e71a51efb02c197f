// The core trains models other than GPT-2, and parameters that are not trainable cost nothing.
#include "nn/regressor.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "nn/gpt_run.h"
#include "support/support.h"

namespace quern::nn {
namespace {

// The loss in double precision, by loops over the formulas.
double twin_loss(const ParameterTable& table, const std::vector<double>& p, const Data& data) {
  const auto at = [&](const std::string& name) {
    for (const Parameter& parameter : table.all()) {
      if (parameter.name == name) return p.data() + parameter.offset;
    }
    throw std::logic_error(name);
  };
  const size_t C = 24, wide = 3 * C;
  double total = 0;
  for (size_t s = 0; s < kSequences; ++s) {
    double y = *at("head.bias"), target = 0;
    for (size_t t = 0; t < kT; ++t) {
      const double* x = at("tokens") + static_cast<size_t>(data.tokens[s * kT + t]) * C;
      double mean = 0, variance = 0;
      for (size_t c = 0; c < C; ++c) mean += x[c] / static_cast<double>(C);
      for (size_t c = 0; c < C; ++c) variance += std::pow(x[c] - mean, 2) / static_cast<double>(C);
      std::vector<double> out(x, x + C);
      for (size_t c = 0; c < C; ++c) out[c] += at("contract.bias")[c];
      for (size_t w = 0; w < wide; ++w) {
        double v = at("expand.bias")[w];
        for (size_t c = 0; c < C; ++c) {
          const double normal = (x[c] - mean) / std::sqrt(variance + 1e-5);
          v += (normal * at("norm.weight")[c] + at("norm.bias")[c]) * at("expand.weight")[c * wide + w];
        }
        v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
        for (size_t c = 0; c < C; ++c) out[c] += v * at("contract.weight")[w * C + c];
      }
      for (size_t c = 0; c < C; ++c) y += out[c] / static_cast<double>(kT) * at("head.weight")[c];
      target += static_cast<double>(data.targets[s * kT + t]) / static_cast<double>(kT);
    }
    total += 0.5 * std::pow(y - target, 2);
  }
  return total;
}

TEST(Regressor, GradientMatchesFiniteDifferencesOfTheDoublePrecisionTwin) {
  Regressor model(RegressorConfig{});
  fill(model);
  const Data data;
  std::vector<double> parameters(model.weights().values().begin(), model.weights().values().end());
  const auto loss = [&] { return twin_loss(model.parameters(), parameters, data); };
  test::for_each_target([&](const kernels::Target&) {
    model.weights().repack();
    const Result found = run(model, data);
    EXPECT_NEAR(found.loss, loss(), 1e-4 * loss());
    for (const Parameter& parameter : model.parameters().all()) {
      for (size_t e = 0; e < parameter.size; e += std::max<size_t>(1, parameter.size / 7)) {
        const size_t i = parameter.offset + e;
        const double slope = test::derivative(loss, parameters[i]);
        ASSERT_NEAR(found.gradient[i], slope, 5e-4 * std::max(1.0, std::abs(slope))) << parameter.name << " " << e;
      }
    }
  });
}

TEST(Regressor, MicroBatchesAndPackedWeightsGiveTheSameBits) {
  Regressor plain(RegressorConfig{}), packed(RegressorConfig{}, true);
  fill(plain);
  fill(packed);
  const Data data;
  const Result expected = run(plain, data);
  EXPECT_EQ(run(packed, data), expected);
  EXPECT_EQ(run(plain, data, 1).gradient, expected.gradient);
  EXPECT_EQ(run(plain, data, 2).gradient, expected.gradient);
}

TEST(Frozen, ParametersHaveNoSegmentGradientOrState) {
  const Declaration all = Regressor::declare({}), some = Regressor::declare({.train_embedding = false});
  const Parameter &table = some.parameters.all().front(), &next = some.parameters.all()[1];
  EXPECT_EQ(table.segments, 0u);
  EXPECT_EQ(next.offset, 0u) << "trainable parameters come first";
  EXPECT_GE(table.offset, some.parameters.trainable_size());
  EXPECT_EQ(some.parameters.size(), all.parameters.size());
  EXPECT_EQ(some.parameters.trainable_size(), all.parameters.size() - 29 * 24 - 8);  // rounded up to 64 bytes
  EXPECT_EQ(Gradient::bytes_of(some.parameters), some.parameters.trainable_size() * sizeof(float));
  for (const Segment& segment : some.parameters.segments()) EXPECT_NE(segment.parameter, ParameterId{0});
}

TEST(Frozen, GradientOfTheOthersIsBitIdentical) {
  Regressor all(RegressorConfig{}), some(RegressorConfig{.train_embedding = false}, true);
  fill(all);
  for (size_t i = 0; i < all.parameters().all().size(); ++i) {
    const Parameter &from = all.parameters().all()[i], &to = some.parameters().all()[i];
    std::copy_n(all.weights().values().begin() + static_cast<ptrdiff_t>(from.offset), from.size,
                some.weights().values().begin() + static_cast<ptrdiff_t>(to.offset));
  }
  some.weights().repack();
  const Data data;
  const Result expected = run(all, data), found = run(some, data);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.gradient.size(), some.parameters().trainable_size());
  for (size_t i = 1; i < all.parameters().all().size(); ++i) {
    const Parameter &from = all.parameters().all()[i], &to = some.parameters().all()[i];
    EXPECT_TRUE(test::same_bits(std::span(expected.gradient).subspan(from.offset, from.size),
                                std::span(found.gradient).subspan(to.offset, to.size)))
        << from.name;
  }
}

}  // namespace
}  // namespace quern::nn
