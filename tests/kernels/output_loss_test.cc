#include "kernels/output_loss.h"

#include <cmath>
#include <vector>

#include "kernels/cross_entropy.h"
#include "support/support.h"

namespace quern::kernels {
namespace {

constexpr size_t kRows = 23, kC = 19, kV = 53;

struct Output {
  std::vector<float> losses = std::vector<float>(kRows), dx = std::vector<float>(kRows * kC),
                     dweight = std::vector<float>(kV * kC);
};

class OutputLossTest : public ::testing::Test {
 protected:
  OutputLossTest() {
    for (size_t r = 0; r < kRows; ++r) targets_.push_back(static_cast<int32_t>(r * 7 % kV));
    targets_[5] = kIgnoreTarget;
  }

  OutputLoss args(Output& out, size_t chunk) const {
    return {.rows = kRows,
            .C = kC,
            .V = kV,
            .x = x_.data(),
            .weight = {weight_.data(), kC},
            .targets = targets_.data(),
            .scale = kScale,
            .losses = out.losses.data(),
            .dx = out.dx.data(),
            .dweight = out.dweight.data(),
            .chunk = chunk};
  }

  Output run(size_t chunk) const {
    Output out;
    std::vector<float> scratch(output_loss_scratch(chunk, kV));
    output_loss(args(out, chunk), scratch);
    return out;
  }

  // scale x the sum of the losses, in double precision.
  double total(const std::vector<double>& x, const std::vector<double>& weight) const {
    double result = 0;
    for (size_t r = 0; r < kRows; ++r) {
      if (targets_[r] == kIgnoreTarget) continue;
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

  static constexpr float kScale = 0.5f;
  std::vector<float> x_ = test::normal(kRows * kC, 1), weight_ = test::normal(kV * kC, 2, 0.3f);
  std::vector<int32_t> targets_;
};

TEST_F(OutputLossTest, LossAndBothGradientsMatchFiniteDifferences) {
  std::vector<double> x(x_.begin(), x_.end()), weight(weight_.begin(), weight_.end());
  std::vector<double> dx, dweight;
  for (double& value : x) dx.push_back(test::derivative([&] { return total(x, weight); }, value));
  for (double& value : weight) dweight.push_back(test::derivative([&] { return total(x, weight); }, value));
  test::for_each_target([&](const Target&) {
    const Output out = run(8);
    double sum = 0;
    for (const float loss : out.losses) sum += loss;
    EXPECT_NEAR(sum * kScale, total(x, weight), 1e-4);
    EXPECT_TRUE(test::close(dx, out.dx, 2e-6));
    EXPECT_TRUE(test::close(dweight, out.dweight, 2e-6));
  });
}

TEST_F(OutputLossTest, ChunkSizeDoesNotChangeTheBits) {
  test::for_each_target([&](const Target&) {
    const Output whole = run(kRows);
    for (const size_t chunk : {1, 2, 7, 8, 22, 64}) {
      const Output out = run(chunk);
      EXPECT_TRUE(test::same_bits(whole.losses, out.losses)) << "chunk " << chunk;
      EXPECT_TRUE(test::same_bits(whole.dx, out.dx)) << "chunk " << chunk;
      EXPECT_TRUE(test::same_bits(whole.dweight, out.dweight)) << "chunk " << chunk;
    }
  });
}

TEST_F(OutputLossTest, PackedWeightsGiveTheSameBits) {
  test::for_each_target([&](const Target&) {
    const Output expected = run(16);
    std::vector<float> forward(packed_size(kC, kV)), backward(packed_size(kV, kC));
    pack_b(Layout::kNT, {weight_.data(), kC}, kC, kV, forward.data());
    pack_b(Layout::kNN, {weight_.data(), kC}, kV, kC, backward.data());
    Output out;
    OutputLoss packed = args(out, 16);
    packed.weight = {};
    packed.packed_weight = forward.data();
    packed.packed_weight_transposed = backward.data();
    std::vector<float> scratch(output_loss_scratch(16, kV));
    output_loss(packed, scratch);
    EXPECT_TRUE(test::same_bits(expected.losses, out.losses));
    EXPECT_TRUE(test::same_bits(expected.dx, out.dx));
    EXPECT_TRUE(test::same_bits(expected.dweight, out.dweight));
  });
}

TEST_F(OutputLossTest, LossAloneTouchesNoGradient) {
  test::for_each_target([&](const Target&) {
    const Output expected = run(8);
    Output out;
    OutputLoss alone = args(out, 8);
    alone.dx = nullptr;
    std::vector<float> scratch(output_loss_scratch(8, kV));
    output_loss(alone, scratch);
    EXPECT_TRUE(test::same_bits(expected.losses, out.losses));
    for (const float g : out.dweight) ASSERT_EQ(g, 0.0f);
  });
}

}  // namespace
}  // namespace quern::kernels
