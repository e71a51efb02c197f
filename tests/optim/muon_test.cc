#include "optim/muon.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/vector_ops.h"
#include "nn/models/language_model.h"
#include "support/message.h"
#include "support/support.h"

namespace quern {
namespace {

const nn::ModelConfig kConfig{.layers = 2, .heads = 2, .width = 32, .context = 8, .vocabulary = 5000};

void update(Optimizer& optimizer, std::vector<float>& weights, const std::vector<float>& gradient, uint64_t number,
            size_t thread = 0) {
  ASSERT_TRUE(optimizer.begin(1.0, 1e-2, number).finite);
  for (size_t unit = 0; unit < optimizer.units().size(); ++unit) optimizer.update(unit, thread, weights, gradient);
}

bool is_matrix_of_a_block(const nn::Parameter& parameter) {
  return parameter.name.starts_with("h.") && parameter.shape.size() == 2;
}

TEST(Muon, CoversTheMatricesOfTheBlocks) {
  const nn::Declaration model = nn::declare(kConfig);
  size_t covered = 0;
  for (const nn::Parameter& parameter : model.parameters.all()) {
    EXPECT_EQ(Muon::covers(parameter), is_matrix_of_a_block(parameter)) << parameter.name;
    covered += Muon::covers(parameter);
  }
  EXPECT_EQ(covered, 8u);
}

TEST(Muon, UnitsCoverEverySegmentOnce) {
  const nn::Declaration model = nn::declare(kConfig);
  Muon optimizer(model.parameters, {.kind = OptimizerKind::kMuon}, 1);
  std::vector<int> count(model.parameters.segments().size());
  size_t last = SIZE_MAX;
  for (const UpdateUnit& unit : optimizer.units()) {
    const nn::Parameter& parameter = model.parameters[model.parameters.segments()[unit.first_segment].parameter];
    if (Muon::covers(parameter)) {
      EXPECT_EQ(unit.segments, parameter.segments);
      EXPECT_LE(parameter.size, last) << "the largest first";
      last = parameter.size;
    }
    for (size_t i = 0; i < unit.segments; ++i) ++count[unit.first_segment + i];
  }
  for (const int n : count) EXPECT_EQ(n, 1);
}

// Queries, keys and values are three matrices; each is orthogonalized alone.
std::vector<float> direction_of(const nn::Parameter& p, std::vector<float> x) {
  const size_t rows = p.rows(), width = p.width() / p.parts;
  std::vector<float> out(x.size());
  Orthogonalizer::Size size;
  size.include(rows, width);
  for (size_t part = 0; part < p.parts; ++part) {
    std::vector<float> alone(rows * width), done(rows * width);
    for (size_t i = 0; i < rows; ++i) std::copy_n(&x[i * p.width() + part * width], width, &alone[i * width]);
    Orthogonalizer(size).run({alone.data(), rows, width, width}, done.data());
    for (size_t i = 0; i < rows; ++i) std::copy_n(&done[i * width], width, &out[i * p.width() + part * width]);
  }
  return out;
}

// Momentum rises over the first updates, the rate of matrices is a multiple of the rate, and decay belongs to it.
TEST(Muon, FollowsTheFormulaOverSeveralSteps) {
  const nn::Declaration model = nn::declare(kConfig);
  const nn::ParameterTable& table = model.parameters;
  Muon optimizer(
      table,
      {.kind = OptimizerKind::kMuon, .weight_decay = 0.3f, .matrix_rate = 2, .momentum = 0.95, .momentum_warmup = 4},
      1);
  std::vector<float> weights = test::normal(table.size(), 1);
  std::vector<double> p(weights.begin(), weights.end()), m(table.size());
  for (uint64_t step = 1; step <= 6; ++step) {
    const std::vector<float> gradient = test::normal(table.size(), static_cast<unsigned>(step) + 1, 0.01f);
    update(optimizer, weights, gradient, step);
    const double warm = std::min(1.0, static_cast<double>(step) / 4), mu = 0.85 + 0.1 * warm;
    for (const nn::Parameter& parameter : table.all()) {
      if (!Muon::covers(parameter)) continue;
      std::vector<float> ahead(parameter.size);
      for (size_t i = 0; i < parameter.size; ++i) {
        const size_t at = parameter.offset + i;
        m[at] = mu * m[at] + (1 - mu) * gradient[at];
        ahead[i] = static_cast<float>(mu * m[at] + (1 - mu) * gradient[at]);
      }
      const std::vector<float> direction = direction_of(parameter, ahead);
      const size_t outputs = parameter.width() / parameter.parts;
      const double in = static_cast<double>(parameter.rows()), out = static_cast<double>(outputs);
      for (size_t i = 0; i < parameter.size; ++i) {
        double& w = p[parameter.offset + i];
        w -= 2e-2 * (std::sqrt(std::max(1.0, out / in)) * static_cast<double>(direction[i]) + 0.3 * w);
      }
    }
  }
  for (const nn::Parameter& parameter : table.all()) {
    if (!Muon::covers(parameter)) continue;
    for (size_t i = parameter.offset; i < parameter.offset + parameter.size; ++i) ASSERT_NEAR(weights[i], p[i], 2e-5);
  }
}

// All parameters but the matrices of blocks change exactly as by AdamW.
TEST(Muon, OtherParametersHaveTheBitsOfAdamW) {
  const nn::Declaration model = nn::declare(kConfig);
  const nn::ParameterTable& table = model.parameters;
  const std::unique_ptr<Optimizer> muon = make_optimizer(table, {.kind = OptimizerKind::kMuon}),
                                   adamw = make_optimizer(table, {});
  std::vector<float> ours = test::normal(table.size(), 1), theirs = ours;
  for (uint64_t step = 1; step <= 3; ++step) {
    const std::vector<float> gradient = test::normal(table.size(), static_cast<unsigned>(step), 0.01f);
    update(*muon, ours, gradient, step);
    update(*adamw, theirs, gradient, step);
  }
  for (const nn::Parameter& parameter : table.all()) {
    const std::span a = std::span(ours).subspan(parameter.offset, parameter.size);
    const std::span b = std::span(theirs).subspan(parameter.offset, parameter.size);
    EXPECT_EQ(std::equal(a.begin(), a.end(), b.begin()), !Muon::covers(parameter)) << parameter.name;
  }
}

TEST(Muon, ThreadAndMeasuringDoNotChangeTheBits) {
  const nn::Declaration model = nn::declare(kConfig);
  const nn::ParameterTable& table = model.parameters;
  const std::vector<float> gradient = test::normal(table.size(), 2);
  const auto trained = [&](size_t thread, bool measured) {
    Muon optimizer(table, {.kind = OptimizerKind::kMuon}, 3);
    std::vector<float> weights = test::normal(table.size(), 1);
    std::vector<Change> changes(table.segments().size());
    static_cast<void>(optimizer.begin(1.0, 1e-2, 1));
    for (size_t unit = optimizer.units().size(); unit-- > 0;) {
      if (measured) {
        optimizer.update_and_measure(unit, thread, weights, gradient, changes);
      } else {
        optimizer.update(unit, thread, weights, gradient);
      }
    }
    for (const Change& change : changes) EXPECT_EQ(change.update > 0, measured);
    return weights;
  };
  const std::vector<float> first = trained(0, false);
  EXPECT_TRUE(test::same_bits(first, trained(2, false)));
  EXPECT_TRUE(test::same_bits(first, trained(1, true)));
}

TEST(Muon, BytesAreThoseOfTheStates) {
  const nn::Declaration model = nn::declare(kConfig);
  const OptimizerBytes muon = optimizer_bytes(model.parameters, OptimizerKind::kMuon, 2);
  const OptimizerBytes adamw = optimizer_bytes(model.parameters, OptimizerKind::kAdamW, 2);
  Muon optimizer(model.parameters, {}, 1);
  size_t bytes = 0;
  for (const OptimizerState& state : optimizer.states()) bytes += state.values.size_bytes();
  EXPECT_EQ(muon.states, bytes);
  EXPECT_LT(muon.states, adamw.states);
  EXPECT_EQ(adamw.scratch, 0u);
  EXPECT_EQ(muon.scratch, 2 * Muon::bytes_per_thread(model.parameters));
}

TEST(Muon, AModelWithoutMatricesIsNamed) {
  nn::ParameterTable table;
  table.add({.name = "a", .shape = {7}});
  table.lay_out();
  const std::string message = test::message_of([&] { make_optimizer(table, {.kind = OptimizerKind::kMuon}); });
  EXPECT_NE(message.find("muon expects a model with trainable matrices"), std::string::npos) << message;
}

}  // namespace
}  // namespace quern
