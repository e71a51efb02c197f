// Activations that are dropped, or stored in 16 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "nn/gpt_run.h"

namespace quern::nn {
namespace {

using kernels::DType;

constexpr DType kStorages[] = {DType::kF32, DType::kBF16, DType::kF16};

ModelConfig deep_config(DType storage, float dropout = 0.1f) {
  return {
      .layers = 7, .heads = 3, .width = 24, .context = 13, .vocabulary = 29, .dropout = dropout, .storage = storage};
}

// GPT-2, and the model that differs from it in every setting.
class Storage : public ::testing::TestWithParam<Variant> {
 protected:
  static ModelConfig config(DType storage, float dropout = 0.1f) {
    return with(GetParam(), deep_config(storage, dropout));
  }
};
INSTANTIATE_TEST_SUITE_P(Variants, Storage, ::testing::ValuesIn(main_variants()),
                         [](const auto& test) { return test.param.name; });
class Recompute : public Storage {};
INSTANTIATE_TEST_SUITE_P(Variants, Recompute, ::testing::ValuesIn(main_variants()),
                         [](const auto& test) { return test.param.name; });

// The relative distance of two gradients.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{a[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

// Promise I2.
TEST_P(Recompute, AnyIntervalGivesTheSameBitsInEveryPrecision) {
  const Data data;
  for (const DType storage : kStorages) {
    Transformer model(config(storage), true);
    fill(model);
    const Result whole = run(model, data);
    for (const size_t interval : {1, 2, 3, 4, 6, 7, 8}) {
      EXPECT_EQ(run(model, data, 2, 1.0f, interval).gradient, whole.gradient) << "interval " << interval;
    }
  }
}

TEST_P(Recompute, InATeamGivesTheSameBits) {
  const Data data;
  for (const DType storage : kStorages) {
    Transformer model(config(storage), true);
    fill(model);
    const Result alone = run(model, data);
    for (const size_t members : {2, 3}) {
      EXPECT_TRUE(test::same_bits(alone.gradient, run_in_team(model, data, members, 3).gradient)) << members;
    }
  }
}

// One layer's activations, the stream at the entry of the six others, and the final norm's: no byte for anything else.
TEST(Recompute, LayersThatAreDroppedHaveNoMemory) {
  const ModelConfig config = deep_config(DType::kF32);
  const auto bytes = [&](size_t interval) {
    return Workspace::plan(declare(config).activations,
                           {.sequences = kSequences, .backward = true, .interval = interval})
        .activations;
  };
  const double all = static_cast<double>(bytes(0)), one = static_cast<double>(bytes(1));
  const double stream = 4.0 * kSequences * 13 * 24;  // fp32, of one layer
  const double rest = 4.0 * kSequences * 13 * 25;    // of the final norm
  EXPECT_NEAR(one - 6 * stream - rest, (all - rest) / 7, 0.02 * all);
  EXPECT_LT(bytes(3), bytes(4));
  EXPECT_EQ(bytes(7), bytes(0));
}

TEST(Storage, In16BitsHalvesWhatIsKept) {
  const auto bytes = [](DType storage) {
    const ModelConfig config{
        .layers = 6, .heads = 6, .width = 384, .context = 256, .vocabulary = 96, .storage = storage};
    return static_cast<double>(Workspace::plan(declare(config).activations, {.backward = true}).activations);
  };
  EXPECT_LT(bytes(DType::kBF16), 0.51 * bytes(DType::kF32));
  EXPECT_EQ(bytes(DType::kBF16), bytes(DType::kF16));
}

// bf16 has 8 bits of precision, fp16 has 11: the gradients differ by about that much, and not more. SwiGLU multiplies
// two rounded tensors, and the norms of Llama have weights, which the test makes as large as 1: about twice the
// difference.
TEST_P(Storage, In16BitsGivesTheGradientToItsPrecision) {
  const Data data;
  std::vector<Result> results;
  for (const DType storage : kStorages) {
    Transformer model(config(storage), true);
    fill(model);
    results.push_back(run(model, data));
  }
  const double bf16 = distance(results[0].gradient, results[1].gradient);
  const double fp16 = distance(results[0].gradient, results[2].gradient);
  const double most = config(DType::kF32).is_gpt2() ? 3e-2 : 7e-2;
  EXPECT_GT(bf16, 1e-4);
  EXPECT_LT(bf16, most);
  EXPECT_GT(fp16, 1e-5);
  EXPECT_LT(fp16, most / 10);
  EXPECT_NEAR(results[0].loss, results[1].loss, 1e-2 * results[0].loss);
}

TEST_P(Storage, LossAloneIsTheLossOfTraining) {
  const Data data;
  for (const DType storage : kStorages) {
    Transformer model(config(storage, 0.0f), true);
    fill(model);
    Workspace work(model.activations(), {.sequences = kSequences});
    EXPECT_EQ(model.loss(data.batch(), work), run(model, data).loss);
  }
}

TEST_P(Storage, SameOnEveryTargetWithFusedMultiplyAdd) {
  const Data data;
  for (const DType storage : {DType::kBF16, DType::kF16}) {
    std::vector<Result> results;
    test::for_each_target([&](const kernels::Target& target) {
      Transformer model(config(storage), true);
      fill(model);
      if (target.fma) results.push_back(run(model, data));
    });
    for (const Result& result : results) EXPECT_EQ(result, results.front());
  }
}

}  // namespace
}  // namespace quern::nn
