// Low-rank adapters, and parameters that are frozen.
#include "nn/layers/adapter.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "nn/gpt_run.h"
#include "support/message.h"

namespace quern::nn {
namespace {

using kernels::DType;

struct Kind {
  std::string name;
  AdapterConfig config;
  std::vector<std::string> llama_targets = {std::string(kAllLayers)};  // instead of those of GPT-2
};

// Adapters of every layer, or of some.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"All", {.rank = 3, .alpha = 4}},
      {"RankStabilized", {.rank = 2, .alpha = 1.5, .rank_stabilized = true}},
      {"Some", {.rank = 5, .alpha = 5, .targets = {"c_attn", "mlp.c_proj"}}, {"q_proj", "self_attn.v_proj", "up_proj"}},
      {"Dropout", {.rank = 2, .alpha = 3, .dropout = 0.3}},
  };
  return all;
}

ModelConfig adapted(ModelConfig config, const Kind& kind) {
  config.adapters = kind.config;
  if (!config.is_gpt2() && kind.config.targets.front() != kAllLayers) config.adapters.targets = kind.llama_targets;
  return config;
}

// Adapters with dropout, in a model with dropout of its own.
ModelConfig dropping(const Variant& variant, DType storage = DType::kF32, float dropout = 0.1f) {
  ModelConfig config = with(variant, small_config(dropout));
  config.layers = 3;
  config.storage = storage;
  config.adapters = {.rank = 4, .alpha = 6, .dropout = 0.2};
  return config;
}

class AdapterGradient : public ::testing::TestWithParam<std::tuple<Variant, Kind>> {};

TEST_P(AdapterGradient, MatchesFiniteDifferencesOfTheDoublePrecisionTwin) {
  const auto& [variant, kind] = GetParam();
  const float dropout = kind.config.dropout > 0 ? 0.2f : 0.0f;
  const ModelConfig config = adapted(with(variant, small_config(dropout)), kind);
  Transformer model(config, false);
  fill(model);
  expect_gradient_of_twin(model, config, Data());
}
INSTANTIATE_TEST_SUITE_P(Variants, AdapterGradient,
                         ::testing::Combine(::testing::ValuesIn(variants()), ::testing::ValuesIn(kinds())),
                         [](const auto& test) { return std::get<0>(test.param).name + std::get<1>(test.param).name; });

class AdapterVariant : public ::testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Main, AdapterVariant, ::testing::ValuesIn(main_variants()),
                         [](const auto& test) { return test.param.name; });

TEST_P(AdapterVariant, AreTheOnlyParametersWithSegmentsAndGradient) {
  const Declaration model = declare(dropping(GetParam()));
  const ParameterTable& table = model.parameters;
  size_t trained = 0;
  for (const Parameter& parameter : table.all()) {
    const bool adapter = parameter.name.find(".lora_") != std::string::npos;
    EXPECT_EQ(parameter.trainable, adapter) << parameter.name;
    EXPECT_EQ(parameter.segments > 0, adapter) << parameter.name;
    EXPECT_EQ(parameter.offset < table.trainable_size(), adapter) << parameter.name;
    trained += adapter ? parameter.size : 0;
  }
  EXPECT_EQ(table.trainable_count(), trained);
  EXPECT_EQ(Gradient(table).values().size(), table.trainable_size());
  EXPECT_EQ(model.adapted, model.linears);
  EXPECT_EQ(model.adapted.size(), (with(GetParam(), small_config()).is_gpt2() ? 4u : 7u) * 3);
}

// The values of every parameter, by name.
std::map<std::string, std::vector<float>> values_of(const Model& model) {
  std::map<std::string, std::vector<float>> values;
  for (const Parameter& parameter : model.parameters().all()) {
    const std::span<const float> part = model.weights().values().subspan(parameter.offset, parameter.size);
    values[parameter.name] = {part.begin(), part.end()};
  }
  return values;
}

std::vector<float> logits_of(const Transformer& model, const Data& data) {
  Workspace work(model.activations(), {.sequences = kSequences});
  std::vector<float> logits(kSequences * kT * model.config().vocabulary);
  model.logits(data.batch(), logits.data(), work);
  return logits;
}

// As it starts: B is zero, and A uniform in [-1 / sqrt(in), 1 / sqrt(in)].
TEST_P(AdapterVariant, StartAsTheBaseModelToTheBit) {
  const Data data;
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    ModelConfig config = dropping(GetParam(), storage);
    Transformer model(config, true);
    config.adapters = {};
    Transformer base(config, true);
    fill(base);
    model.initialise(8);
    const std::map<std::string, std::vector<float>> values = values_of(base);
    for (const Parameter& parameter : model.parameters().all()) {
      const auto to = model.weights().values().begin() + static_cast<ptrdiff_t>(parameter.offset);
      if (!parameter.adapter) {
        std::ranges::copy(values.at(parameter.name), to);
        continue;
      }
      const auto [least, most] = std::minmax_element(to, to + static_cast<ptrdiff_t>(parameter.size));
      const bool is_a = parameter.name.ends_with(kAdapterA);
      const float bound = is_a ? 1.0f / std::sqrt(static_cast<float>(parameter.shape[1])) : 0.0f;
      EXPECT_LE(*most, bound);
      EXPECT_GE(*least, -bound);
      if (!is_a) continue;
      EXPECT_GT(*most - *least, 1.5f * bound);
    }
    model.weights().repack();
    EXPECT_TRUE(test::same_bits(logits_of(base, data), logits_of(model, data)));
  }
}

TEST_P(AdapterVariant, AnyTeamIntervalAndCutGivesTheSameBitsInEveryPrecision) {
  const Data data;
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    Transformer model(dropping(GetParam(), storage), true);
    fill(model);
    const Result whole = run(model, data);
    EXPECT_TRUE(std::ranges::any_of(whole.gradient, [](float x) { return x != 0.0f; }));
    for (const size_t interval : {1, 2}) {
      EXPECT_EQ(run(model, data, 2, 1.0f, interval).gradient, whole.gradient) << "interval " << interval;
    }
    for (const size_t members : {2, 3, 4}) {
      EXPECT_EQ(run_in_team(model, data, members, members == 3 ? 1 : 0), whole) << members << " members";
    }
  }
}

TEST_P(AdapterVariant, PackedWeightsGiveTheSameBits) {
  const Data data;
  Transformer plain(dropping(GetParam()), false), packed(dropping(GetParam()), true);
  fill(plain);
  fill(packed);
  EXPECT_EQ(run(plain, data), run(packed, data));
}

// Products then read the packed copies alone, forward and backward, also after a repack.
TEST_P(AdapterVariant, ReleasedMatricesGiveTheSameBits) {
  const Data data;
  for (const DType storage : {DType::kF32, DType::kBF16}) {
    Transformer model(dropping(GetParam(), storage), true);
    fill(model);
    const Result before = run(model, data);
    model.weights().release_adapted();
    EXPECT_EQ(run(model, data), before);
    model.weights().repack();
    EXPECT_EQ(run(model, data), before);
    EXPECT_EQ(run_in_team(model, data, 2), before);
  }
}

TEST_P(AdapterVariant, SameOnEveryTargetWithFusedMultiplyAdd) {
  const Data data;
  for (const DType storage : {DType::kF32, DType::kBF16}) {
    std::vector<Result> results;
    test::for_each_target([&](const kernels::Target& target) {
      Transformer model(dropping(GetParam(), storage), true);
      fill(model);
      if (target.fma) results.push_back(run(model, data));
    });
    for (const Result& result : results) EXPECT_EQ(result, results.front());
  }
}

TEST_P(AdapterVariant, LossAloneIsTheLossWithoutDropout) {
  const Data data;
  ModelConfig config = dropping(GetParam(), DType::kF32, 0.0f);
  Transformer model(config, false);
  config.adapters.dropout = 0;
  Transformer without(config, false);
  fill(model);
  fill(without);
  Workspace work(model.activations(), {.sequences = kSequences});
  const double loss = model.loss(data.batch(), work);
  EXPECT_EQ(loss, run(without, data).loss);
  EXPECT_NE(loss, run(model, data).loss);
}

// As without adapters, 16 bits change the gradient by about their precision. Rounding errors grow from block to block
// on the way back: of the last of three blocks fp16 is 4 to 8 times closer than bf16, of the first one 3 to 4 times.
TEST_P(AdapterVariant, In16BitsGiveTheGradientToItsPrecision) {
  const Data data;
  std::vector<std::vector<float>> gradients;
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    Transformer model(dropping(GetParam(), storage), true);
    fill(model);
    gradients.push_back(run(model, data).gradient);
  }
  const auto distance = [&](const std::vector<float>& other) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < other.size(); ++i) {
      difference += std::pow(double{other[i]} - double{gradients[0][i]}, 2);
      norm += std::pow(double{gradients[0][i]}, 2);
    }
    return std::sqrt(difference / norm);
  };
  EXPECT_LT(distance(gradients[1]), 7e-2);
  EXPECT_LT(distance(gradients[2]), 2e-2);
  EXPECT_LT(distance(gradients[2]), distance(gradients[1]) / 3);
}

// The operand of the gradient of B has as many columns as the rank, which may be more than any layer of the model has.
TEST(Adapter, ARankAboveEveryWidthGivesTheSameBitsInATeam) {
  ModelConfig config = small_config(0.1f);
  config.width = 12;
  config.adapters = {.rank = 700, .alpha = 10, .dropout = 0.1};
  Transformer model(config, true);
  fill(model);
  const Data data;
  const Result alone = run(model, data);
  for (const size_t members : {2, 4}) EXPECT_EQ(run_in_team(model, data, members), alone) << members;
}

// What the projections to queries, keys and values computed.
class ProjectionWatch : public Watch {
 public:
  explicit ProjectionWatch(std::string name) : name_(std::move(name)) {}
  void saw(std::string_view name, const kernels::SavedTensor& tensor, size_t count, uint32_t) override {
    if (name != name_) return;
    const auto* data = static_cast<const float*>(tensor.data);
    values.assign(data, data + count);
  }
  std::vector<float> values;

 private:
  std::string name_;
};

std::vector<float> watched(const Transformer& model, const std::string& name, const MicroBatch& batch) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(), {.sequences = kSequences, .backward = true});
  ProjectionWatch watch(name);
  model.forward_backward(batch, {.scale = 1.0f, .gradient = gradient, .watch = &watch}, work);
  return watch.values;
}

TEST(AdapterDropout, LeavesTheExpectedOutputUnchanged) {
  const Data data;
  ModelConfig config = small_config();
  config.layers = 1;
  config.adapters = {.rank = 3, .alpha = 6, .dropout = 0.4, .targets = {"c_attn"}};
  Transformer model(config, true);
  config.adapters.dropout = 0;
  Transformer without(config, true);
  fill(model);
  fill(without);
  const std::vector<float> expected = watched(without, "h.0.attn.c_attn", data.batch());
  ASSERT_FALSE(expected.empty());
  std::vector<double> sum(expected.size()), squares(expected.size());
  constexpr uint32_t kSteps = 600;
  for (uint32_t step = 0; step < kSteps; ++step) {
    MicroBatch batch = data.batch();
    batch.step = step;
    const std::vector<float> found = watched(model, "h.0.attn.c_attn", batch);
    for (size_t i = 0; i < found.size(); ++i) {
      sum[i] += found[i];
      squares[i] += double{found[i]} * found[i];
    }
  }
  double variance = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double mean = sum[i] / kSteps, deviation = std::sqrt(squares[i] / kSteps - mean * mean);
    variance += deviation;
    ASSERT_NEAR(mean, expected[i], 6 * deviation / std::sqrt(double{kSteps}) + 1e-4) << i;
  }
  EXPECT_GT(variance, 0.0);
}

// Two equal sequences, and the same adapter for queries and keys with nothing else there: only the masks can differ.
TEST(AdapterDropout, MasksDifferBetweenLayersSequencesAndSteps) {
  const Data data;
  const std::vector<int32_t> tokens(2 * kT, 3);
  for (const double dropout : {0.0, 0.5}) {
    ModelConfig config = small_config();
    config.family = Family::kLlama;
    config.layers = 1;
    config.adapters = {.rank = 2, .alpha = 2, .dropout = dropout, .targets = {"q_proj", "k_proj"}};
    Transformer model(config, false);
    fill(model);
    const auto part = [&](const std::string& name) {
      const auto found =
          std::ranges::find(model.parameters().all(), "model.layers.0.self_attn." + name + ".weight", &Parameter::name);
      return model.weights().values().subspan(found->offset, found->size);
    };
    for (const char* name : {"q_proj", "k_proj"}) std::ranges::fill(part(name), 0.0f);
    std::ranges::copy(part("q_proj.lora_A"), part("k_proj.lora_A").begin());
    std::ranges::copy(part("q_proj.lora_B"), part("k_proj.lora_B").begin());
    MicroBatch batch = data.batch();
    batch.sequences = 2;
    batch.columns = {{kTokensColumn, tokens.data()}, {kTargetsColumn, data.targets.data()}};
    const auto project = [&] { return watched(model, "model.layers.0.self_attn.{q,k,v}_proj", batch); };
    const std::vector<float> qkv = project();
    const size_t C = config.width, width = 3 * C;
    ASSERT_EQ(qkv.size(), 2 * kT * width);
    EXPECT_EQ(project(), qkv);
    const auto queries = std::span(qkv).first(C), keys = std::span(qkv).subspan(C, C),
               second = std::span(qkv).subspan(kT * width, C), later = std::span(qkv).subspan(3 * width, C);
    for (const auto& other : {keys, second, later}) EXPECT_EQ(std::ranges::equal(queries, other), dropout == 0.0);
    ++batch.step;
    EXPECT_EQ(project() == qkv, dropout == 0.0);
  }
}

TEST(Adapter, TargetsThatNameNoLayerAreErrors) {
  const auto message = [](std::vector<std::string> targets) {
    ModelConfig config = small_config();
    config.adapters = {.rank = 2, .targets = std::move(targets)};
    return test::message_of([&] { declare(config); });
  };
  EXPECT_EQ(message({"c_attn"}), "no error");
  EXPECT_EQ(message({"h.1.mlp.c_fc"}), "no error");
  for (const char* bad : {"q_proj", "attn", "_attn", "", "h.2.mlp.c_fc", "wte", "lm_head"}) {
    const std::string found = message({"c_attn", bad});
    EXPECT_NE(found.find("lora.targets"), std::string::npos) << bad;
    EXPECT_NE(found.find("c_attn, c_fc, c_proj"), std::string::npos) << bad;
  }
  EXPECT_NE(message({}).find("lora.targets"), std::string::npos);
}

// Frozen layers get no gradient, and the others exactly the one that they have in a model that trains everything.
TEST_P(AdapterVariant, FrozenPartsDoNotChangeTheGradientOfOthers) {
  const Data data;
  const bool gpt2 = with(GetParam(), small_config()).is_gpt2();
  const std::vector<std::vector<std::string>> choices =
      gpt2 ? std::vector<std::vector<std::string>>{{"wte"}, {"h.0", "h.1.attn"}, {"mlp"}, {"attn.c_attn.weight"}}
           : std::vector<std::vector<std::string>>{
                 {"embed_tokens"}, {"layers.0", "model.norm"}, {"mlp"}, {"self_attn", "lm_head"}};
  for (const std::vector<std::string>& frozen : choices) {
    ModelConfig config = with(GetParam(), small_config(0.1f));
    if (!config.is_gpt2()) config.tied_output = false;
    Transformer whole(config, true);
    config.frozen = frozen;
    Transformer model(config, true);
    fill(whole);
    const std::map<std::string, std::vector<float>> values = values_of(whole);
    for (const Parameter& parameter : model.parameters().all()) {
      std::ranges::copy(values.at(parameter.name),
                        model.weights().values().begin() + static_cast<ptrdiff_t>(parameter.offset));
    }
    model.weights().repack();
    const Result all = run(whole, data), some = run(model, data);
    EXPECT_EQ(all.loss, some.loss);
    size_t skipped = 0;
    for (size_t i = 0; i < model.parameters().all().size(); ++i) {
      const Parameter &mine = model.parameters().all()[i], &other = whole.parameters().all()[i];
      skipped += mine.trainable ? 0 : 1;
      EXPECT_EQ(mine.trainable, mine.segments > 0) << mine.name;
      if (!mine.trainable) continue;
      EXPECT_TRUE(test::same_bits(std::span(all.gradient).subspan(other.offset, other.size),
                                  std::span(some.gradient).subspan(mine.offset, mine.size)))
          << mine.name;
    }
    EXPECT_GT(skipped, 0u);
    EXPECT_EQ(run_in_team(model, data, 3, 1), some);
  }
}

TEST(Frozen, NamesThatMatchNothingOrEverythingAreErrors) {
  const auto message = [](std::vector<std::string> frozen) {
    ModelConfig config = small_config();
    config.frozen = std::move(frozen);
    return test::message_of([&] { declare(config); });
  };
  EXPECT_EQ(message({"h.0", "wte.weight"}), "no error");
  for (const char* bad : {"h.2", "", "h.0.at", "WTE"}) {
    EXPECT_NE(message({"h.0", bad}).find("train.freeze"), std::string::npos) << bad;
  }
  EXPECT_NE(message({"wte", "wpe", "h", "ln_f"}).find("left to train"), std::string::npos);
}

}  // namespace
}  // namespace quern::nn
