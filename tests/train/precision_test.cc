// Promise I2, and mixed precision: what is stored in 16 bits, what is dropped, and what the loss scale does.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/watchdog.h"
#include "train/recompute.h"
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

TEST(Precision, EveryRecomputeStrategyAndThreadCountGivesTheSameBits) {
  const ::quern::test::Watchdog watchdog("strategies");
  const RandomTokens tokens(3000, kVocabulary);
  std::vector<Trained> by_precision;
  for (const Precision precision : kPrecisions) {
    RunConfig config = deep_config(precision);
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

// The scale multiplies the gradient that flows back, and is taken out again before the update and the report.
TEST(Precision, TheLossScaleChangesNeitherNormNorUpdate) {
  const RandomTokens tokens(3000, kVocabulary);
  const RunConfig config = deep_config(Precision::kFp16);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  std::vector<Trained> results;
  for (const double scale : {65536.0, 1024.0, 1.0}) {
    Engine engine(config, batches, kVocabulary);
    engine.trainer.loss_scaler().resume(scale, 0);
    engine.steps(3);
    results.push_back(engine.result());
  }
  EXPECT_TRUE(results[1] == results[0]);  // powers of two are exact
  EXPECT_TRUE(results[2] == results[0]);
}

TEST(Precision, AnOverflowIsSkippedHalvesTheScaleAndTrainingRecovers) {
  const ::quern::test::Watchdog watchdog("overflow");
  const RandomTokens tokens(3000, kVocabulary);
  const RunConfig config = deep_config(Precision::kFp16);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  engine.steps(2);
  const double too_large = std::ldexp(1.0, 90);
  engine.trainer.loss_scaler().resume(too_large, 7);
  const Trained before = engine.result();
  const StepReport skipped = engine.trainer.step();
  EXPECT_FALSE(skipped.finite);
  EXPECT_TRUE(std::isfinite(skipped.loss));
  EXPECT_EQ(skipped.loss_scale, too_large / 2);
  EXPECT_EQ(engine.trainer.loss_scaler().clean_steps(), 0u);
  const Trained after = engine.result();
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_EQ(after.m, before.m);
  EXPECT_EQ(after.v, before.v);

  StepReport report = skipped;
  for (int i = 0; i < 60 && !report.finite; ++i) report = engine.trainer.step();
  EXPECT_TRUE(report.finite);
  EXPECT_EQ(report.loss_scale, engine.trainer.loss_scaler().scale());
  for (int i = 0; i < 30; ++i) report = engine.trainer.step();
  EXPECT_LT(report.loss, skipped.loss);
}

}  // namespace
}  // namespace quern::train
