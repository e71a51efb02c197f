#include "kernels/attention.h"

#include <string>
#include <tuple>

#include "kernels/attention_twin.h"
#include "support/support.h"

namespace quern::kernels {
namespace {

constexpr float kUntouched = -777.0f;  // what outputs hold where attention must not write

// Without gaps between rows. `group` heads of queries share keys and values.
AttentionShape tight(size_t T, size_t heads, size_t D, size_t group = 1) {
  const size_t kv_heads = heads / group;
  return {T, heads, kv_heads, D, (heads + 2 * kv_heads) * D, heads * D};
}

AttentionShape bidirectional(AttentionShape shape) {
  shape.causal = false;
  return shape;
}

std::string name_of(const AttentionShape& shape) {
  return std::string(shape.causal ? "causal" : "bidirectional") + " T=" + std::to_string(shape.T) +
         " heads=" + std::to_string(shape.heads) + " kv_heads=" + std::to_string(shape.kv_heads) +
         " D=" + std::to_string(shape.head_dim);
}

Dropout dropout_of(float rate) {
  return {rate, {.seed = 11, .purpose = Purpose::kAttentionDropout, .layer = 2, .step = 5, .sequence = 7}};
}

// Inputs of one call, reproducible, and as long as the strides ask for: no float after the last row's end.
struct Inputs {
  explicit Inputs(const AttentionShape& s, float deviation = 1.0f)
      : shape(s),
        qkv(test::normal((s.T - 1) * s.qkv_stride + s.qkv_width(), 1, deviation)),
        dout(test::normal((s.T - 1) * s.out_stride + s.heads * s.head_dim, 2)) {}

  AttentionShape shape;
  std::vector<float> qkv, dout;
};

struct Results {
  std::vector<float> out, logsumexp, dqkv;
};

// The kernel on buffers `offset` floats off alignment, with the heads cut at `cut`.
Results run_kernel(const Inputs& in, const Dropout& dropout, size_t offset = 0, size_t cut = 0) {
  const AttentionShape& shape = in.shape;
  const test::Placed qkv(in.qkv, offset), dout(in.dout, offset);
  test::Placed out(in.dout.size(), kUntouched, offset), lse(shape.heads * shape.T, kUntouched, offset);
  test::Placed dqkv(in.qkv.size(), kUntouched, offset);
  test::Placed scratch(attention_scratch(shape), std::nanf(""), offset);
  const auto over_heads = [&](auto call) {
    if (cut > 0) call(0, cut);
    call(cut, shape.heads);
  };
  over_heads([&](size_t first, size_t last) {
    attention_forward(shape, qkv.data(), out.data(), lse.data(), dropout, first, last, scratch.span());
  });
  over_heads([&](size_t first, size_t last) {
    attention_backward(shape, qkv.data(), out.data(), lse.data(), dout.data(), dqkv.data(), dropout, first, last,
                       scratch.span());
  });
  return {out.copy(), lse.copy(), dqkv.copy()};
}

Results run_twin(const Inputs& in, const Dropout& dropout) {
  Results r = {std::vector<float>(in.dout.size(), kUntouched),
               std::vector<float>(in.shape.heads * in.shape.T, kUntouched),
               std::vector<float>(in.qkv.size(), kUntouched)};
  for (size_t h = 0; h < in.shape.heads; ++h) {
    const twin::Head head{in.shape, h};
    twin::attention_forward(head, in.qkv.data(), r.out.data(), r.logsumexp.data(), dropout);
    twin::attention_backward(head, in.qkv.data(), r.out.data(), r.logsumexp.data(), in.dout.data(), r.dqkv.data(),
                             dropout);
  }
  return r;
}

void expect_same(const Results& expected, const Results& found) {
  EXPECT_TRUE(test::same_bits(expected.out, found.out)) << "out";
  EXPECT_TRUE(test::same_bits(expected.logsumexp, found.logsumexp)) << "logsumexp";
  EXPECT_TRUE(test::same_bits(expected.dqkv, found.dqkv)) << "dqkv";
}

void expect_twin_bits(const Inputs& in, const Dropout& dropout, size_t offset) {
  SCOPED_TRACE(name_of(in.shape));
  const Results expected = run_twin(in, dropout);
  test::for_each_target([&](const Target& target) {
    if (target.fma) expect_same(expected, run_kernel(in, dropout, offset));
  });
}

// Against double precision, on every target.
void expect_close(const Inputs& in, const Dropout& dropout, double tolerance) {
  SCOPED_TRACE(name_of(in.shape));
  const std::vector<double> qkv(in.qkv.begin(), in.qkv.end()), dout(in.dout.begin(), in.dout.end());
  std::vector<double> out(dout.size()), dqkv(qkv.size());
  for (size_t h = 0; h < in.shape.heads; ++h) {
    twin::attention_forward({in.shape, h}, qkv, out, dropout);
    twin::attention_backward({in.shape, h}, qkv, dout, dqkv, dropout);
  }
  test::for_each_target([&](const Target&) {
    const Results found = run_kernel(in, dropout);
    EXPECT_TRUE(test::close(out, found.out, tolerance)) << "out";
    EXPECT_TRUE(test::close(dqkv, found.dqkv, tolerance)) << "dqkv";
  });
}

constexpr size_t kLengths[] = {1, 2, 3, 16, 17, 63, 64, 65, 100, 129, 200};

TEST(Attention, MatchesTheTwinBitForBitForEveryLength) {
  for (const size_t T : kLengths) {
    for (const size_t D : {3u, 16u, 64u}) expect_twin_bits(Inputs(tight(T, 2, D)), {}, 0);
  }
}

TEST(Attention, MatchesTheTwinBitForBitForEveryHeadSize) {
  for (const size_t D : {1u, 3u, 8u, 16u, 32u, 64u, 80u, 128u, 256u}) {
    for (const size_t T : {5u, 49u, 97u}) expect_twin_bits(Inputs(tight(T, 2, D)), {}, 0);
  }
}

TEST(Attention, AlignmentAndStridesDoNotMatter) {
  for (const size_t offset : {1u, 3u, 8u, 15u}) {
    expect_twin_bits(Inputs({70, 3, 3, 8, 3 * 24 + 5, 24 + 3}), {}, offset);
    expect_twin_bits(Inputs({70, 1, 1, 17, 3 * 17 + 16, 17 + 1}), {}, offset);
  }
}

// Groups of 3 and 7 are those of SmolLM2 and Qwen2.5; one head of keys is multi-query attention.
TEST(Attention, SharedKeysMatchTheTwinBitForBit) {
  for (const size_t group : {2u, 3u, 7u}) {
    for (const size_t T : {1u, 17u, 64u, 100u, 129u}) {
      expect_twin_bits(Inputs(tight(T, 2 * group, 16, group)), {}, 1);
      expect_twin_bits(Inputs(tight(T, group, 5, group)), dropout_of(0.3f), 0);
    }
    expect_twin_bits(Inputs(tight(70, 2 * group, 128, group)), {}, 0);
  }
}

// 9, 42 and 64 are squares of boards.
TEST(Attention, BidirectionalMatchesTheTwinBitForBit) {
  for (const size_t T : {1u, 2u, 9u, 17u, 42u, 64u, 65u, 97u, 129u, 200u}) {
    for (const size_t D : {3u, 16u, 32u}) expect_twin_bits(Inputs(bidirectional(tight(T, 2, D))), {}, 0);
    expect_twin_bits(Inputs(bidirectional(tight(T, 4, 16, 2))), {}, 1);
    expect_twin_bits(Inputs(bidirectional(tight(T, 6, 5, 3))), dropout_of(0.3f), 0);
  }
  expect_twin_bits(Inputs(bidirectional({70, 3, 3, 8, 3 * 24 + 5, 24 + 3})), {}, 3);
}

TEST(Attention, DropoutMatchesTheTwinBitForBit) {
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    for (const size_t T : {1u, 17u, 64u, 65u, 129u, 200u}) {
      expect_twin_bits(Inputs(tight(T, 3, 16)), dropout_of(rate), 1);
    }
    expect_twin_bits(Inputs(tight(100, 2, 5)), dropout_of(rate), 0);
  }
}

// Scores of 1e4 and of 1e12 saturate softmax; gradients and outputs stay finite and keep the twin's bits.
TEST(Attention, HugeAndTinyScoresStayFinite) {
  for (const float deviation : {1e-20f, 1e-3f, 100.0f, 1e6f}) {
    const Inputs in(tight(130, 2, 16), deviation);
    expect_twin_bits(in, {}, 0);
    test::for_each_target([&](const Target&) {
      const Results found = run_kernel(in, {});
      for (const auto* values : {&found.out, &found.logsumexp, &found.dqkv}) {
        EXPECT_TRUE(std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); }));
      }
    });
  }
}

// A sum that underflows to -0 must not keep its sign only where a tile ends at the diagonal.
TEST(Attention, VanishingGradientsMatchTheTwinBitForBit) {
  Inputs in(tight(50, 1, 16), 1e-3f);
  for (float& value : in.dout) value *= 1e-38f;
  const Results expected = run_twin(in, {});
  test::for_each_target([&](const Target& target) {
    if (!target.fma) return;
    Results found = run_kernel(in, {});
    for (float& value : found.dqkv) EXPECT_FALSE(value == 0.0f && std::signbit(value));
    expect_same(expected, found);
  });
}

TEST(Attention, NanReachesTheOutput) {
  Inputs in(tight(40, 1, 16));
  in.qkv[20 * in.shape.qkv_stride] = std::nanf("");  // q of position 20
  test::for_each_target([&](const Target&) {
    const Results found = run_kernel(in, {});
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(found.out[i * 16]), i == 20) << i;
  });
}

TEST(Attention, SplittingTheHeadsIsBitIdentical) {
  const Inputs causal(tight(100, 5, 24)), all(bidirectional(tight(100, 5, 24)));
  for (const auto& [which, rate] : {std::pair{&causal, 0.0f}, {&causal, 0.3f}, {&all, 0.0f}, {&all, 0.3f}}) {
    const Inputs& in = *which;
    test::for_each_target([&](const Target&) {
      const Results whole = run_kernel(in, dropout_of(rate));
      for (const size_t cut : {1u, 2u, 4u}) expect_same(whole, run_kernel(in, dropout_of(rate), 0, cut));
    });
  }
}

TEST(Attention, SplittingTheGroupsIsBitIdentical) {
  const Inputs in(tight(100, 6, 24, 3));
  test::for_each_target([&](const Target&) {
    const Results whole = run_kernel(in, dropout_of(0.3f));
    expect_same(whole, run_kernel(in, dropout_of(0.3f), 0, 3));
    // Forward may also be split within a group.
    std::vector<float> out(in.dout.size()), lse(in.shape.heads * in.shape.T), scratch(attention_scratch(in.shape));
    for (const auto& [first, last] : {std::pair{4u, 6u}, {2u, 4u}, {0u, 2u}}) {
      attention_forward(in.shape, in.qkv.data(), out.data(), lse.data(), dropout_of(0.3f), first, last, scratch);
    }
    EXPECT_TRUE(test::same_bits(whole.out, out));
    EXPECT_TRUE(test::same_bits(whole.logsumexp, lse));
  });
}

TEST(Attention, DoesNotTouchOtherHeads) {
  const Inputs in(tight(20, 3, 8));
  test::for_each_target([&](const Target&) {
    std::vector<float> out(in.dout.size(), kUntouched), lse(60, kUntouched), dqkv(in.qkv.size(), kUntouched);
    std::vector<float> scratch(attention_scratch(in.shape));
    attention_forward(in.shape, in.qkv.data(), out.data(), lse.data(), {}, 1, 2, scratch);
    attention_backward(in.shape, in.qkv.data(), out.data(), lse.data(), in.dout.data(), dqkv.data(), {}, 1, 2, scratch);
    for (size_t i = 0; i < dqkv.size(); ++i) EXPECT_EQ(dqkv[i] != kUntouched, i / 8 % 3 == 1) << i;
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i] != kUntouched, i / 8 % 3 == 1) << i;
    for (size_t i = 0; i < lse.size(); ++i) EXPECT_EQ(lse[i] != kUntouched, i / 20 == 1) << i;
  });
}

TEST(Attention, MatchesTheFullMatrixInDouble) {
  for (const size_t T : kLengths) expect_close(Inputs(tight(T, 2, 32)), {}, 1e-5);
  for (const size_t D : {1u, 3u, 8u, 80u, 128u}) expect_close(Inputs(tight(65, 2, D)), {}, 1e-5);
  for (const size_t T : {1u, 64u, 129u}) expect_close(Inputs(tight(T, 2, 16)), dropout_of(0.2f), 1e-5);
  for (const size_t T : {1u, 9u, 42u, 64u, 129u}) {
    expect_close(Inputs(bidirectional(tight(T, 2, 16))), {}, 1e-5);
    expect_close(Inputs(bidirectional(tight(T, 2, 16))), dropout_of(0.2f), 1e-5);
  }
}

// With keys of their own and with shared ones.
TEST(Attention, BackwardMatchesFiniteDifferences) {
  for (const auto& [rate, group, causal] : {std::tuple{0.0f, 1u, true},
                                            {0.25f, 1u, true},
                                            {0.0f, 2u, true},
                                            {0.25f, 2u, true},
                                            {0.0f, 1u, false},
                                            {0.25f, 2u, false}}) {
    const AttentionShape shape = tight(19, 2, 3, group);
    const Inputs in(causal ? shape : bidirectional(shape));
    const std::vector<float> weights = in.dout;
    const Dropout dropout = dropout_of(rate);
    std::vector<double> qkv(in.qkv.begin(), in.qkv.end()), out(in.dout.size());
    const auto loss = [&] {
      for (size_t h = 0; h < 2; ++h) twin::attention_forward({in.shape, h}, qkv, out, dropout);
      double sum = 0.0;
      for (size_t i = 0; i < out.size(); ++i) sum += static_cast<double>(weights[i]) * out[i];
      return sum;
    };
    std::vector<double> expected;
    for (double& x : qkv) expected.push_back(test::derivative(loss, x));
    test::for_each_target(
        [&](const Target&) { EXPECT_TRUE(test::close(expected, run_kernel(in, dropout).dqkv, 2e-5)); });
  }
}

TEST(Attention, ScratchGrowsWithTNotWithItsSquare) {
  const size_t once = attention_scratch(tight(4096, 1, 64)), twice = attention_scratch(tight(8192, 1, 64));
  EXPECT_LE(twice, 2 * once);
}

}  // namespace
}  // namespace quern::kernels
