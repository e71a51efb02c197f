// The health of gradients: measured by the workers, the same for any number of them, and without a trace in the
// weights.
#include "diagnose/health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/watchdog.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

using test::Engine;
using test::RandomTokens;

constexpr uint32_t kVocabulary = 61;

RunConfig config_with(uint64_t threads, uint64_t interval, Precision precision = Precision::kFp32) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.1};
  config.train.steps = 100;
  config.train.batch = 16;
  config.train.threads = threads;
  config.train.precision = precision;
  config.optimizer.warmup = 2;
  config.diagnostics.health_interval = interval;
  return config;
}

// A report that outlives its step.
std::vector<TensorHealth> kept(const HealthReport& report) { return {report.tensors.begin(), report.tensors.end()}; }

bool same(const std::vector<TensorHealth>& a, const std::vector<TensorHealth>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const TensorHealth& x, const TensorHealth& y) {
    return x.name == y.name && x.norm == y.norm && x.mean == y.mean && x.largest == y.largest && x.zeros == y.zeros &&
           x.update_ratio == y.update_ratio;
  });
}

// Its report points to its tensors.
static_assert(!std::is_copy_constructible_v<Health> && !std::is_move_constructible_v<Health>);

TEST(Health, DoesNotChangeTheWeights) {
  const ::quern::test::Watchdog watchdog("health");
  const RandomTokens tokens(3000, kVocabulary);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    RunConfig config = config_with(1, 0, precision);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    Engine plain(config, batches, kVocabulary);
    plain.steps(4);
    for (const uint64_t threads : {1, 2, 5}) {
      config = config_with(threads, 1, precision);
      Engine engine(config, batches, kVocabulary);
      engine.steps(4);
      EXPECT_TRUE(engine.result() == plain.result()) << precision_name(precision) << ", " << threads << " threads";
    }
  }
}

TEST(Health, DoesNotDependOnThreads) {
  const ::quern::test::Watchdog watchdog("health");
  const RandomTokens tokens(3000, kVocabulary);
  std::vector<std::vector<TensorHealth>> expected;
  for (const uint64_t threads : {1, 2, 4, 7}) {
    const RunConfig config = config_with(threads, 1);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    Engine engine(config, batches, kVocabulary);
    for (size_t i = 0; i < 3; ++i) {
      engine.steps(1);
      ASSERT_NE(engine.health(), nullptr);
      EXPECT_EQ(engine.health()->norm, engine.norms.back());
      std::vector<TensorHealth> tensors = kept(*engine.health());
      if (threads == 1) {
        for (TensorHealth& tensor : tensors) {  // names live as long as the model
          static std::vector<std::string> names;
          names.reserve(1000);
          tensor.name = names.emplace_back(tensor.name);
        }
        expected.push_back(std::move(tensors));
      } else {
        EXPECT_TRUE(same(tensors, expected[i])) << threads << " threads, step " << i;
      }
    }
  }
}

// By plain loops over the gradient and over the weights before and after.
TEST(Health, MatchesPlainLoops) {
  const RandomTokens tokens(3000, kVocabulary);
  const RunConfig config = config_with(2, 2);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  engine.steps(1);
  EXPECT_EQ(engine.health(), nullptr);  // every second step
  const std::vector<float> before = test::copy_of(engine.model.weights().values());
  engine.steps(1);
  const HealthReport* report = engine.health();
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->step, 2u);
  const std::span<const float> after = engine.model.weights().values(),
                               gradient = engine.trainer.context().gradient.values();
  const auto& infos = engine.model.parameters().all();
  ASSERT_EQ(report->tensors.size(), infos.size());
  for (size_t t = 0; t < infos.size(); ++t) {
    double sum = 0, squares = 0, largest = 0, zeros = 0, weights = 0, change = 0;
    for (size_t i = infos[t].offset; i < infos[t].offset + infos[t].size; ++i) {
      const double g = static_cast<double>(gradient[i]), w = static_cast<double>(before[i]);
      sum += g;
      squares += g * g;
      largest = std::max(largest, std::abs(g));
      zeros += g == 0 ? 1 : 0;
      weights += w * w;
      change += (static_cast<double>(after[i]) - w) * (static_cast<double>(after[i]) - w);
    }
    const TensorHealth& found = report->tensors[t];
    const auto size = static_cast<double>(infos[t].size);
    EXPECT_EQ(found.name, infos[t].name);
    EXPECT_NEAR(found.norm, std::sqrt(squares), 1e-5 * std::sqrt(squares)) << found.name;
    EXPECT_NEAR(found.mean, sum / size, 1e-6 * largest) << found.name;
    EXPECT_EQ(found.largest, largest) << found.name;
    EXPECT_EQ(found.zeros, zeros / size) << found.name;
    const double ratio = weights > 0 ? std::sqrt(change / weights) : 0;
    EXPECT_NEAR(found.update_ratio, ratio, 1e-4 * ratio) << found.name;
    EXPECT_GT(found.update_ratio, 0) << found.name;
  }
}

// A model whose second block's feed-forward is switched off: both matrices zero, so nothing flows into either.
TEST(Health, NamesADeadLayer) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config = config_with(2, 1);
  config.model.dropout = 0;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  for (const nn::Parameter& tensor : engine.model.parameters().all()) {
    if (!tensor.name.starts_with("h.1.mlp.")) continue;
    const auto values = engine.model.weights().values().subspan(tensor.offset, tensor.size);
    std::fill(values.begin(), values.end(), 0.0f);
  }
  engine.model.weights().repack();
  engine.steps(1);
  HealthWarnings warnings;
  const std::vector<std::string> found = warnings.of(*engine.health());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].substr(0, found[0].find(';')),
            "step 1: h.1.ln_2.weight, h.1.ln_2.bias, h.1.mlp.c_fc.weight and 2 more: the gradient is all zero "
            "(a dead layer)");
}

HealthReport report_of(const std::vector<TensorHealth>& tensors, double norm) {
  return {.step = 7, .norm = norm, .tensors = tensors};
}

TEST(HealthWarnings, NameTheProblemAndAdvise) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    TensorHealth tensor;
    double norm;
    std::vector<std::string> says;
  };
  const std::vector<Case> cases = {
      {{.name = "a", .norm = 1, .largest = 1}, 1, {}},
      {{.name = "a", .norm = kNan, .largest = kNan}, kNan, {"step 7: a: the gradient contains NaN"}},
      {{.name = "a", .norm = kInfinity, .largest = kInfinity}, kInfinity, {"step 7: a: the gradient is infinite"}},
      {{.name = "a", .norm = 0, .largest = 0, .zeros = 1}, 1, {"step 7: a: the gradient is all zero", "rate"}},
      {{.name = "a", .norm = 9e-8, .largest = 1e-9}, 1, {"step 7: a: the gradient's norm is below 1e-07", "raise"}},
      {{.name = "a", .norm = 101, .largest = 1},
       101,
       {"step 7: the gradient's norm is 101, above 100", "lower optimizer.rate"}},
      {{.name = "a", .norm = 100, .largest = 1}, 100, {}},
      {{.name = "a", .norm = 1e-7, .largest = 1}, 1e-7, {}},
  };
  for (const Case& c : cases) {
    HealthWarnings warnings;
    const std::vector<TensorHealth> tensors = {c.tensor};
    const std::vector<std::string> found = warnings.of(report_of(tensors, c.norm));
    ASSERT_EQ(found.size(), c.says.empty() ? 0u : 1u) << c.norm;
    for (const std::string& part : c.says) EXPECT_NE(found[0].find(part), std::string::npos) << found[0];
  }
}

TEST(HealthWarnings, AreNotRepeatedWhileTheyLast) {
  HealthWarnings warnings;
  const std::vector<TensorHealth> dead = {{.name = "a", .norm = 0, .largest = 0}};
  const std::vector<TensorHealth> fine = {{.name = "a", .norm = 1, .largest = 1}};
  EXPECT_EQ(warnings.of(report_of(dead, 200)).size(), 2u);
  EXPECT_EQ(warnings.of(report_of(dead, 300)).size(), 0u);
  EXPECT_EQ(warnings.of(report_of(fine, 1)).size(), 0u);
  EXPECT_EQ(warnings.of(report_of(dead, 200)).size(), 2u);
}

}  // namespace
}  // namespace quern::train
