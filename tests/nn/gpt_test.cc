#include "nn/models/transformer.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "nn/gpt_run.h"
#include "support/support.h"

namespace quern::nn {
namespace {

class GptGradient : public ::testing::TestWithParam<std::tuple<Variant, float>> {
 protected:
  ModelConfig config() const { return with(std::get<0>(GetParam()), small_config(std::get<1>(GetParam()))); }
};

TEST_P(GptGradient, MatchesFiniteDifferencesOfTheDoublePrecisionTwin) {
  Transformer model(config(), false);
  fill(model);
  expect_gradient_of_twin(model, model.config(), Data());
}
INSTANTIATE_TEST_SUITE_P(Variants, GptGradient,
                         ::testing::Combine(::testing::ValuesIn(variants()), ::testing::Values(0.0f, 0.2f)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + (std::get<1>(test.param) == 0 ? "" : "WithDropout");
                         });

class GptVariant : public ::testing::TestWithParam<Variant> {
 protected:
  ModelConfig config(float dropout = 0.1f) const { return with(GetParam(), small_config(dropout)); }
};
INSTANTIATE_TEST_SUITE_P(All, GptVariant, ::testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

// Promise I3: sequences taken one by one, by twos or at once give the same bits.
TEST_P(GptVariant, CutIntoMicroBatchesGivesTheSameBits) {
  Transformer model(config(), false);
  fill(model);
  const Data data;
  test::for_each_target([&](const kernels::Target&) {
    const Result whole = run(model, data);
    for (const size_t at_once : {1, 2}) {
      const Result cut = run(model, data, at_once);
      EXPECT_TRUE(test::same_bits(whole.gradient, cut.gradient)) << at_once << " at once";
      EXPECT_NEAR(whole.loss, cut.loss, 1e-9);
    }
  });
}

TEST_P(GptVariant, PackedWeightsGiveTheSameBits) {
  test::for_each_target([this](const kernels::Target&) {
    const Data data;
    Transformer plain(config(), false), packed(config(), true);
    fill(plain);
    fill(packed);
    EXPECT_EQ(run(plain, data), run(packed, data));
  });
}

TEST_P(GptVariant, SameOnEveryTargetWithFusedMultiplyAdd) {
  const Data data;
  std::vector<Result> results;
  test::for_each_target([&](const kernels::Target& target) {
    Transformer model(config(), true);
    fill(model);
    if (target.fma) results.push_back(run(model, data));
  });
  for (const Result& result : results) EXPECT_EQ(result, results.front());
}

TEST_P(GptVariant, LossAloneIsTheLossWithoutDropout) {
  Transformer model(config(0.0f), false);
  fill(model);
  const Data data;
  Workspace work(model.activations(), {.sequences = kSequences});
  EXPECT_EQ(model.loss(data.batch(), work), run(model, data).loss);
}

// Its weights point to its layout: a model that was moved or copied would read the layout of another, perhaps a dead
// one.
static_assert(!std::is_copy_constructible_v<Transformer> && !std::is_copy_assignable_v<Transformer>);
static_assert(!std::is_move_constructible_v<Transformer> && !std::is_move_assignable_v<Transformer>);
static_assert(!std::is_move_constructible_v<Workspace> && !std::is_move_constructible_v<Gradient>);

TEST(Gpt, ScaleMultipliesTheGradient) {
  Transformer model(small_config(), false);
  fill(model);
  const Data data;
  const Result one = run(model, data), quarter = run(model, data, kSequences, 0.25f);
  EXPECT_EQ(one.loss, quarter.loss);
  for (size_t i = 0; i < one.gradient.size(); ++i) ASSERT_EQ(quarter.gradient[i], 0.25f * one.gradient[i]) << i;
}

TEST(Gpt, InitialisedAsGpt2) {
  const ModelConfig config{.layers = 3, .heads = 2, .width = 64, .context = 40, .vocabulary = 300};
  Transformer model(config, false);
  model.initialise(1);
  for (const Parameter& tensor : model.parameters().all()) {
    const std::span<const float> values = std::as_const(model).weights().values().subspan(tensor.offset, tensor.size);
    double sum = 0, squares = 0;
    for (const float x : values) {
      sum += x;
      squares += static_cast<double>(x) * x;
    }
    const double n = static_cast<double>(tensor.size), deviation = std::sqrt(squares / n);
    const bool projection = tensor.name.ends_with("c_proj.weight");
    if (tensor.decay) {
      EXPECT_NEAR(deviation, projection ? 0.02 / std::sqrt(6.0) : 0.02, 0.001) << tensor.name;
      EXPECT_NEAR(sum / n, 0.0, 5 * 0.02 / std::sqrt(n)) << tensor.name;
    } else {
      for (const float x : values) ASSERT_EQ(x, tensor.name.ends_with("weight") ? 1.0f : 0.0f) << tensor.name;
    }
  }
  Transformer other(config, false);
  other.initialise(2);
  EXPECT_NE(other.weights().values()[0], model.weights().values()[0]);
}

TEST(Gpt, EmbeddingDeviationIsThatOfTheTokenTableAlone) {
  const ModelConfig config{.layers = 1, .heads = 2, .width = 64, .context = 300, .vocabulary = 300};
  ModelConfig wider = config;
  wider.embedding_deviation = 0.3;
  Transformer model(config, false), other(wider, false);
  model.initialise(1);
  other.initialise(1);
  for (const Parameter& tensor : model.parameters().all()) {
    const double factor = tensor.name == "wte.weight" ? 15.0 : 1.0;
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const double expected = factor * model.weights().values()[i];
      ASSERT_NEAR(other.weights().values()[i], expected, 1e-6 * std::abs(expected)) << tensor.name;
    }
  }
}

// Blocks that add nothing to the stream and an output of zeros: every token is equally likely at first.
TEST(Gpt, ZeroProjectionsPredictTheUniformDistribution) {
  ModelConfig config = small_config();
  config.zero_projections = true;
  config.tied_output = false;
  Transformer model(config, false);
  model.initialise(1);
  const Data data;
  Workspace work(model.activations(), {.sequences = kSequences});
  const double targets = static_cast<double>(kSequences * kT - 1);  // one does not count
  EXPECT_NEAR(model.loss(data.batch(), work), targets * std::log(29.0), 1e-4);
}

TEST(ParameterTable, HasHuggingFaceNamesShapesAndGpt2Size) {
  const Declaration model = declare({.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257});
  const ParameterTable& layout = model.parameters;
  EXPECT_EQ(layout.count(), 124439808u);
  EXPECT_EQ(layout.all().size(), 2 + 12 * 12 + 2);
  const auto find = [&](const std::string& name) {
    return std::find_if(layout.all().begin(), layout.all().end(),
                        [&](const Parameter& tensor) { return tensor.name == name; });
  };
  ASSERT_NE(find("h.11.attn.c_attn.weight"), layout.all().end());
  EXPECT_EQ(find("h.11.attn.c_attn.weight")->shape, (std::vector<size_t>{768, 2304}));
  EXPECT_EQ(find("wte.weight")->shape, (std::vector<size_t>{50257, 768}));
  size_t end = 0;
  for (const Parameter& tensor : layout.all()) {
    EXPECT_GE(tensor.offset, end);
    EXPECT_EQ(tensor.offset % 16, 0u);
    end = tensor.offset + tensor.size;
  }
  EXPECT_LE(end, layout.size());
}

TEST(ModelConfig, ImpossibleSizesAreErrorsThatNameTheField) {
  const auto message = [](ModelConfig config) -> std::string {
    try {
      check(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  EXPECT_NE(message({.layers = 0}).find("layers"), std::string::npos);
  EXPECT_NE(message({.heads = 3, .width = 128}).find("width"), std::string::npos);
  EXPECT_NE(message({.heads = 1, .width = 1024}).find("width / heads"), std::string::npos);
  EXPECT_NE(message({.vocabulary = 0}).find("vocabulary"), std::string::npos);
  EXPECT_NE(message({.dropout = 1.0f}).find("dropout"), std::string::npos);
  EXPECT_NE(message({.context = size_t{1} << 40}).find("context"), std::string::npos);
  EXPECT_NE(message({.heads = 8, .width = 24, .positions = Positions::kRotary}).find("even"), std::string::npos);
  EXPECT_NE(message({.embedding_deviation = 0.0}).find("embedding_deviation"), std::string::npos);
  EXPECT_NE(message({.logit_cap = -1.0f}).find("logit_cap"), std::string::npos);
}

}  // namespace
}  // namespace quern::nn
