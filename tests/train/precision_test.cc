// Promise I2, and mixed precision: what is stored in 16 bits, what is dropped, and what stays fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "config/recompute.h"
#include "support/modern.h"
#include "support/watchdog.h"
#include "train/sequential.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

using test::Engine;
using test::RandomTokens;
using test::Trained;

constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kBf16, Precision::kFp16};
constexpr uint32_t kVocabulary = 61;

// A sanitizer is some fifty times slower.
const std::vector<const char*> kStrategies =
    test::kSanitized ? std::vector<const char*>{"none", "sqrt"}
                     : std::vector<const char*>{"none", "every-layer", "sqrt", "interval=4", "auto"};
constexpr uint32_t kSteps = test::kSanitized ? 2 : 4;

RunConfig deep_config(Precision precision) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 2, .width = 32, .context = 24, .vocabulary = kVocabulary, .dropout = 0.1};
  config.train.batch = 24;
  config.train.steps = 100;
  config.train.precision = precision;
  config.optimizer.warmup = 2;
  return config;
}

class PrecisionOf : public ::testing::TestWithParam<::quern::test::ModelKind> {};
INSTANTIATE_TEST_SUITE_P(Models, PrecisionOf, ::testing::ValuesIn(::quern::test::model_kinds()),
                         [](const auto& test) { return test.param.name; });

TEST_P(PrecisionOf, RecomputeAndThreadsDoNotChangeTheWeights) {
  const ::quern::test::Watchdog watchdog("strategies");
  const RandomTokens tokens(3000, kVocabulary);
  std::vector<Trained> by_precision;
  for (const Precision precision : kPrecisions) {
    RunConfig config = deep_config(precision);
    config.model = GetParam().apply(config.model);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    std::vector<Trained> results;
    for (const char* strategy : kStrategies) {
      for (const uint64_t threads : {1, 4}) {
        config.train.recompute = *parse_recompute(strategy);
        config.train.threads = threads;
        Engine engine(config, batches, kVocabulary);
        engine.steps(kSteps);
        results.push_back(engine.result());
        EXPECT_TRUE(results.back() == results.front()) << strategy << ", " << threads << " threads";
      }
    }
    by_precision.push_back(results.front());
  }
  EXPECT_FALSE(by_precision[0] == by_precision[1]);
  EXPECT_FALSE(by_precision[0] == by_precision[2]);
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(by_precision[1].losses[i], by_precision[0].losses[i], 0.01);
    EXPECT_NEAR(by_precision[2].losses[i], by_precision[0].losses[i], 0.002);
  }
}

// Master weights have all their bits: a rate that bf16 weights could not follow still moves them.
TEST(Precision, MasterWeightsStayInFullPrecision) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config = deep_config(Precision::kBf16);
  config.optimizer.rate = 1e-6;
  config.optimizer.min_rate = 1e-6;
  config.optimizer.warmup = 0;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  const Trained before = engine.result();
  engine.steps(3);
  const Trained after = engine.result();
  size_t moved = 0;
  for (size_t i = 0; i < before.weights.size(); ++i) moved += before.weights[i] != after.weights[i];
  EXPECT_GT(moved, before.weights.size() / 2);
}

// Gradients are fp32 in every precision: what fp16 could not tell from zero is there, without a loss scale.
TEST(Precision, GradientsHaveTheRangeOfFp32) {
  const RandomTokens tokens(3000, kVocabulary);
  for (const Precision precision : kPrecisions) {
    const RunConfig config = deep_config(precision);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    Engine engine(config, batches, kVocabulary);
    engine.steps(1);
    const float min = std::ldexp(1.0f, -25);  // half of the least number that fp16 has
    const std::span<const float> gradient = engine.trainer.context().gradient.values();
    const auto small = std::ranges::count_if(gradient, [&](float g) { return g != 0 && std::abs(g) < min; });
    EXPECT_GT(small, 100) << precision_name(precision);
  }
}

// Every activation is finite, and so is the loss; the gradient of c_fc is the product of 1e30, from the norm, with
// 1e34, from c_proj.
void make_gradient_overflow(Engine& engine) {
  for (const nn::Parameter& tensor : engine.model.parameters().all()) {
    const std::span<float> values = engine.model.weights().values().subspan(tensor.offset, tensor.size);
    if (tensor.name == "h.1.ln_2.weight") std::ranges::fill(values, 1e30f);
    if (tensor.name.starts_with("h.1.mlp.c_fc.")) std::ranges::fill(values, 0.0f);
    if (tensor.name == "h.1.mlp.c_proj.weight") std::ranges::fill(values, 1e38f);
  }
  engine.model.weights().repack();
}

TEST(Precision, OverflowingGradientSkipsTheUpdate) {
  const RandomTokens tokens(3000, kVocabulary);
  const RunConfig config = deep_config(Precision::kFp32);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  engine.steps(2);
  const Trained sound = engine.result();
  make_gradient_overflow(engine);
  const Trained before = engine.result();
  const StepReport report = engine.trainer.step();
  EXPECT_TRUE(std::isfinite(report.loss));
  EXPECT_FALSE(report.finite);
  EXPECT_EQ(report.trouble, Trouble::kGradient);
  EXPECT_TRUE(report.skipped());
  const Trained after = engine.result();
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_EQ(after.states, before.states);
  std::ranges::copy(sound.weights, engine.model.weights().values().begin());
  engine.model.weights().repack();
  EXPECT_FALSE(engine.trainer.step().skipped());
}

// The bias corrections undo that moments begin at zero, so they count updates: a step without one does not move the
// moments. The first update moves a weight by the rate, whatever its gradient, and not by three quarters of it.
TEST(Precision, SkippedStepIsNotCountedInBiasCorrection) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config = deep_config(Precision::kFp32);
  config.optimizer.warmup = 0;
  config.optimizer.weight_decay = 0;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  const Trained before = engine.result();
  make_gradient_overflow(engine);
  EXPECT_TRUE(engine.trainer.step().skipped());
  EXPECT_EQ(engine.state.step, 1u);
  EXPECT_EQ(engine.state.updates, 0u);
  std::ranges::copy(before.weights, engine.model.weights().values().begin());
  engine.model.weights().repack();
  const StepReport report = engine.trainer.step();
  EXPECT_FALSE(report.skipped());
  EXPECT_EQ(engine.state.updates, 1u);
  const std::vector<float> after = engine.result().weights;
  size_t moved = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    if (std::abs(engine.trainer.context().gradient.values()[i]) < 1e-5f) continue;  // far above epsilon
    ASSERT_NEAR(std::abs(after[i] - before.weights[i]), report.rate, 0.01 * report.rate) << i;
    ++moved;
  }
  EXPECT_GT(moved, 1000u);
}

}  // namespace
}  // namespace quern::train
