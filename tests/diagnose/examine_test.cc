// Where the first number of a step that is not finite comes from.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/error.h"
#include "diagnose/incident.h"
#include "support/modern.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

using test::Engine;
using test::RandomTokens;

constexpr uint32_t kVocabulary = 61;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Incidents of fp16 runs once had the hash of a gradient that was multiplied by a loss scale.
TEST(GradientHash, OfAScaledGradient) {
  const nn::Declaration model = nn::declare({.layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = 50});
  const nn::ParameterTable& layout = model.parameters;
  std::vector<float> values(layout.size()), scaled(layout.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * 1e-4f;
    scaled[i] = values[i] * 65536;
  }
  values[7] = scaled[7] = kNan;
  EXPECT_EQ(gradient_hash(layout, values, 65536), gradient_hash(layout, scaled));
  EXPECT_NE(gradient_hash(layout, values), gradient_hash(layout, scaled));
}

// A frozen parameter lies behind the end of the gradient.
TEST(GradientHash, SkipsFrozenParameters) {
  nn::ParameterTable table;
  table.add({.name = "frozen", .shape = {50}, .trainable = false});
  table.add({.name = "trained", .shape = {20}});
  table.lay_out();
  nn::ParameterTable alone;
  alone.add({.name = "trained", .shape = {20}});
  alone.lay_out();
  const std::vector<float> values(table.trainable_size(), 0.5f);
  EXPECT_EQ(gradient_hash(table, values), gradient_hash(alone, values));
}

// Forward in its order, by a NaN in each of its weights.
TEST(Examine, NamesTheFirstBadTensor) {
  struct Case {
    const char* weight;
    const char* first;
    bool qwen3 = false;
  };
  const RandomTokens tokens(3000, kVocabulary);
  for (const auto& [weight, first, qwen3] :
       {Case{"wpe.weight", "embedding"},
        {"h.0.ln_1.weight", "h.0.attn.c_attn"},
        {"h.1.attn.c_attn.weight", "h.1.attn.c_attn"},
        {"h.1.attn.c_proj.weight", "h.1.attn.c_proj"},
        {"h.1.ln_2.bias", "h.1.mlp.c_fc"},
        {"h.0.mlp.c_fc.bias", "h.0.mlp.c_fc"},
        {"h.0.mlp.c_proj.weight", "h.0.mlp.c_proj"},
        {"ln_f.weight", "ln_f"},
        {"model.layers.0.input_layernorm.weight", "model.layers.0.self_attn.{q,k,v}_proj", true},
        {"model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.{q,k,v}_proj", true},
        {"model.layers.1.self_attn.q_norm.weight", "model.layers.1.self_attn.qkv", true},
        {"model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.gate_proj", true},
        {"model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.up_proj", true},
        {"model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.down_proj", true},
        {"model.norm.weight", "model.norm", true}}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      SCOPED_TRACE(weight);
      RunConfig config;
      config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
      if (qwen3) config.model = ::quern::test::qwen3(config.model);
      config.train.threads = 2;
      config.train.precision = precision;
      const data::TrainingBatches batches = test::batches_of(config, tokens);
      Engine engine(config, batches, kVocabulary);
      for (const nn::Parameter& tensor : engine.model.parameters().all()) {
        if (tensor.name == weight) engine.model.weights().values()[tensor.offset] = kNan;
      }
      engine.model.weights().repack();
      const RunState now = engine.state;
      const Findings found = examine(engine.trainer.context(), read_step(engine.trainer.context(), now), now);
      ASSERT_TRUE(found.weight.has_value() && found.pass.has_value());
      EXPECT_EQ(found.weight->tensor, weight);
      EXPECT_EQ(found.pass->tensor, first);
      EXPECT_TRUE(found.pass->nan);
      EXPECT_EQ(found.pass->sequence, 0u);
    }
  }
}

// Both summands are finite; their sum, the residual stream after attention, is not.
TEST(Examine, NamesTheLayerWhoseSumOverflows) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  for (const nn::Parameter& parameter : engine.model.parameters().all()) {
    const std::span<float> values = engine.model.weights().values().subspan(parameter.offset, parameter.size);
    if (parameter.name == "wte.weight") std::ranges::fill(values, 1e37f);
    if (parameter.name == "h.0.attn.c_proj.bias") std::ranges::fill(values, 3.4e38f);
  }
  engine.model.weights().repack();
  const RunState now = engine.state;
  const Findings found = examine(engine.trainer.context(), read_step(engine.trainer.context(), now), now);
  ASSERT_TRUE(found.pass.has_value());
  EXPECT_EQ(found.pass->tensor, "h.0.attn.c_proj");
  EXPECT_FALSE(found.pass->nan);
}

// The others do not have the token whose embedding is too large to take its mean, and think it has no chance to follow.
TEST(Examine, NamesTheBadSequence) {
  constexpr int32_t kBadToken = 60;
  constexpr size_t kBadSequence = 5;
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
  config.train.threads = 2;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  const std::span<float> weights = engine.model.weights().values();
  for (const nn::Parameter& tensor : engine.model.parameters().all()) {
    if (tensor.name == "ln_f.weight") std::fill_n(weights.begin() + tensor.offset, tensor.size, 1e-3f);
    for (const size_t i : {0, 16}) {  // which are added to one another first
      if (tensor.name == "ln_f.bias") weights[tensor.offset + i] = -0.1f;
      if (tensor.name == "wte.weight") weights[tensor.offset + kBadToken * 32 + i] = 3e38f;
    }
  }
  engine.model.weights().repack();
  const RunState now = engine.state;
  StepTokens step = read_step(engine.trainer.context(), now);
  std::replace(step.inputs.begin(), step.inputs.end(), kBadToken, 0);
  std::replace(step.targets.begin(), step.targets.end(), kBadToken, 0);
  EXPECT_FALSE(examine(engine.trainer.context(), step, now).pass.has_value());
  step.inputs[kBadSequence * 32 + 7] = kBadToken;
  const Findings found = examine(engine.trainer.context(), step, now);
  ASSERT_TRUE(found.pass.has_value());
  EXPECT_EQ(found.pass->tensor, "h.0.ln_1");
  EXPECT_EQ(found.pass->sequence, kBadSequence);
  EXPECT_FALSE(found.weight.has_value());
}

// Forward is fine, for what is multiplied by 1e38 is 0; backward is not.
TEST(Examine, NamesABadGradient) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
  config.train.threads = 2;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  const RunState now = engine.state;
  const StepTokens step = read_step(engine.trainer.context(), now);
  EXPECT_FALSE(examine(engine.trainer.context(), step, now).pass.has_value());
  for (const nn::Parameter& tensor : engine.model.parameters().all()) {
    const std::span<float> values = engine.model.weights().values().subspan(tensor.offset, tensor.size);
    if (tensor.name == "h.1.ln_2.weight") std::ranges::fill(values, 1e30f);
    if (tensor.name.starts_with("h.1.mlp.c_fc.")) std::ranges::fill(values, 0.0f);
    if (tensor.name == "h.1.mlp.c_proj.weight") std::ranges::fill(values, 1e38f);
  }
  engine.model.weights().repack();
  const Findings found = examine(engine.trainer.context(), step, now);
  EXPECT_FALSE(found.weight.has_value());
  ASSERT_TRUE(found.pass.has_value());
  EXPECT_EQ(found.pass->tensor, "gradient of h.1.mlp.c_fc.weight");
}

// Steps before and after are what they would have been without a look in between.
TEST(Examine, DoesNotAffectTheNextStep) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.1};
  config.train.threads = 3;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine plain(config, batches, kVocabulary), watched(config, batches, kVocabulary);
  plain.steps(4);
  for (int i = 0; i < 4; ++i) {
    const RunState now = watched.state;
    EXPECT_FALSE(examine(watched.trainer.context(), read_step(watched.trainer.context(), now), now).pass.has_value());
    watched.steps(1);
  }
  EXPECT_TRUE(plain.result() == watched.result());
}

}  // namespace
}  // namespace quern::train
