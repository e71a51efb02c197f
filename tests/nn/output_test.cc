#include "nn/layers/output.h"

#include <cmath>
#include <vector>

#include "kernels/cross_entropy.h"
#include "support/support.h"

namespace quern::nn {
namespace {

constexpr size_t kRows = 23, kC = 24, kV = 53;
constexpr float kScale = 0.5f;

struct Found {
  std::vector<float> losses, dx, dweight;
};

class OutputTest : public ::testing::Test {
 protected:
  OutputTest() {
    for (size_t r = 0; r < kRows; ++r) targets_.push_back(static_cast<int32_t>(r * 7 % kV));
    targets_[5] = kernels::kIgnoreTarget;
    model_.activations.width = kC;
    model_.activations.context = kRows;
    model_.parameters.lay_out();
  }

  // `chunk` rows of logits at once; with or without gradient; with packed weights or without.
  Found run(size_t chunk, bool gradient = true, bool packed = false) const {
    Weights weights(model_.parameters, packed);
    std::copy(table_.begin(), table_.end(), weights.values().begin());
    weights.repack();
    Workspace work(model_.activations, {.backward = true});
    work.output_chunk = chunk;
    std::copy(x_.begin(), x_.end(), work.inner.begin());
    Gradient sum(model_.parameters);
    const MicroBatch batch{.columns = {{kTargetsColumn, targets_.data()}}, .sequences = 1, .T = kRows};
    const Member alone;
    const Pass pass{weights, batch, work, alone, 0.0f, &sum};
    gradient ? output_.forward_backward(pass, kScale) : output_.forward(pass);
    return {{work.losses.begin(), work.losses.begin() + kRows},
            {work.dinner.begin(), work.dinner.begin() + kRows * kC},
            {sum.values().begin(), sum.values().begin() + kV * kC}};
  }

  // scale x the sum of the losses, in double precision.
  double total(const std::vector<double>& x, const std::vector<double>& weight) const {
    double result = 0;
    for (size_t r = 0; r < kRows; ++r) {
      if (targets_[r] == kernels::kIgnoreTarget) continue;
      std::vector<double> logits(kV, 0.0);
      double sum = 0;
      for (size_t v = 0; v < kV; ++v) {
        for (size_t c = 0; c < kC; ++c) logits[v] += x[r * kC + c] * weight[v * kC + c];
        sum += std::exp(logits[v]);
      }
      result += std::log(sum) - logits[static_cast<size_t>(targets_[r])];
    }
    return result * kScale;
  }

  Declaration model_;
  Output output_{model_, {.name = "output", .width = kC, .outputs = kV}};
  std::vector<float> x_ = test::normal(kRows * kC, 1), table_ = test::normal(kV * kC, 2, 0.3f);
  std::vector<int32_t> targets_;
};

TEST_F(OutputTest, LossAndBothGradientsMatchFiniteDifferences) {
  std::vector<double> x(x_.begin(), x_.end()), weight(table_.begin(), table_.end());
  std::vector<double> dx, dweight;
  for (double& value : x) dx.push_back(test::derivative([&] { return total(x, weight); }, value));
  for (double& value : weight) dweight.push_back(test::derivative([&] { return total(x, weight); }, value));
  test::for_each_target([&](const kernels::Target&) {
    const Found out = run(8);
    double sum = 0;
    for (const float loss : out.losses) sum += loss;
    EXPECT_NEAR(sum * kScale, total(x, weight), 1e-4);
    EXPECT_TRUE(test::close(dx, out.dx, 2e-6));
    EXPECT_TRUE(test::close(dweight, out.dweight, 2e-6));
  });
}

TEST_F(OutputTest, ChunkSizeDoesNotChangeTheBits) {
  test::for_each_target([&](const kernels::Target&) {
    const Found whole = run(kRows);
    for (const size_t chunk : {1, 2, 7, 8, 22}) {
      const Found out = run(chunk);
      EXPECT_TRUE(test::same_bits(whole.losses, out.losses)) << "chunk " << chunk;
      EXPECT_TRUE(test::same_bits(whole.dx, out.dx)) << "chunk " << chunk;
      EXPECT_TRUE(test::same_bits(whole.dweight, out.dweight)) << "chunk " << chunk;
    }
  });
}

TEST_F(OutputTest, PackedWeightsGiveTheSameBits) {
  test::for_each_target([&](const kernels::Target&) {
    const Found expected = run(16), out = run(16, true, true);
    EXPECT_TRUE(test::same_bits(expected.losses, out.losses));
    EXPECT_TRUE(test::same_bits(expected.dx, out.dx));
    EXPECT_TRUE(test::same_bits(expected.dweight, out.dweight));
  });
}

TEST_F(OutputTest, LossAloneTouchesNoGradient) {
  test::for_each_target([&](const kernels::Target&) {
    const Found expected = run(8), out = run(8, false);
    EXPECT_TRUE(test::same_bits(expected.losses, out.losses));
    for (const float g : out.dweight) ASSERT_EQ(g, 0.0f);
  });
}

}  // namespace
}  // namespace quern::nn
