// Products with operands in 16 bits, and what a product keeps of its result.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/gemm_problem.h"
#include "support/half.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

using test::Placed;

constexpr Epilogue kEpilogues[] = {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasGelu, Epilogue::kBiasRelu2};

// Rounds to nearest even in place, and returns the bits.
std::vector<Half> narrow(DType type, std::span<float> values) {
  std::vector<Half> half(values.size());
  (type == DType::kBF16 ? to_bf16 : to_f16)(values.data(), half.data(), half.size());
  (type == DType::kBF16 ? from_bf16 : from_f16)(half.data(), values.data(), half.size());
  return half;
}

// Elements of `type`, one of them off alignment, in an allocation that ends exactly with the last.
class Bytes {
 public:
  Bytes(size_t elements, DType type) : values_((elements + 1) * size_of(type), std::byte{0xAB}), type_(type) {}
  void* data() { return values_.data() + size_of(type_); }
  std::span<const std::byte> span() const { return values_; }

 private:
  std::vector<std::byte> values_;
  DType type_;
};

// The product with a B that is rounded first: B packed whole, in parts by PackB, and multiplied in blocks.
TEST(GemmStorage, HalfPackedOperandGivesTheProductOfTheRounded) {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for_each_problem([type](Layout layout, Size size) {
      Problem problem(layout, size), rounded(layout, size);
      narrow(type, rounded.b_values().span());
      const std::vector<float> twin = rounded.twin(true);
      test::for_each_target([&](const Target& target) {
        gemm(rounded.args(true), scratch());
        const std::vector<float> expected = rounded.result();
        if (target.fma) {
          EXPECT_TRUE(test::same_bits(twin, expected));
        }
        Gemm args = problem.args(true);
        Bytes packed(packed_size(size.K, size.N), type), parts(packed_size(size.K, size.N), type);
        pack_b(layout, args.b, size.K, size.N, packed.data(), type);
        const size_t row = size.K / 3, column = size.N > kPanelColumns ? kPanelColumns : 0;
        for (const Range rows : {Range{row, size.K}, Range{0, row}}) {
          for (const Range columns : {Range{column, size.N}, Range{0, column}}) {
            pack_b({layout, args.b, size.K, parts.data(), type, rows, columns});
          }
        }
        EXPECT_TRUE(std::ranges::equal(packed.span(), parts.span()));
        args.b = {};
        args.packed_b = packed.data();
        args.packed_type = type;
        gemm(args, scratch());
        EXPECT_TRUE(test::same_bits(expected, problem.result()));
        problem.args(true);  // C as it was
        for (const Range rows : {Range{0, size.M / 2}, Range{size.M / 2, size.M}}) {
          for (const Range columns : {Range{0, column}, Range{column, size.N}}) {
            gemm(block_of(args, rows, columns), scratch());
          }
        }
        EXPECT_TRUE(test::same_bits(expected, problem.result()));
      });
    });
  }
}

// A B whose fp16 overflows, and a 16-bit source, which packs without another rounding.
TEST(GemmStorage, HalfPackingRoundsOnce) {
  const size_t K = 70, N = 101;
  std::vector<float> values = test::normal(K * N, 3, 40000.0f);
  values[7] = std::nanf(""), values[8] = -1e30f, values[9] = 1e-7f;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    std::vector<float> rounded = values;
    const std::vector<Half> half = narrow(type, rounded);
    test::for_each_target([&](const Target&) {
      for (const Layout layout : {Layout::kNN, Layout::kNT}) {
        const size_t stride = layout == Layout::kNT ? K : N;
        std::vector<Half> packed(packed_size(K, N)), again(packed_size(K, N)), expected(packed_size(K, N));
        std::vector<float> wide(packed_size(K, N));
        pack_b(layout, {rounded.data(), stride}, K, N, wide.data());
        (type == DType::kBF16 ? to_bf16 : to_f16)(wide.data(), expected.data(), expected.size());
        pack_b(layout, {values.data(), stride}, K, N, packed.data(), type);
        pack_b(layout, {half.data(), stride, type}, K, N, again.data(), type);
        EXPECT_EQ(packed, expected);
        EXPECT_EQ(again, expected);
      }
    });
  }
}

// 16-bit operands are widened exactly, so the product is that of the widened matrices, bit for bit.
TEST(GemmStorage, HalfOperandsGiveTheProductOfTheirValues) {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for_each_problem([type](Layout layout, Size size) {
      Problem problem(layout, size);
      const std::vector<Half> a = narrow(type, problem.a_values().span());
      const std::vector<Half> b = narrow(type, problem.b_values().span());
      test::for_each_target([&](const Target&) {
        gemm(problem.args(true), scratch());
        const std::vector<float> expected = problem.result();
        for (const bool half_a : {true, false}) {
          for (const bool half_b : {true, false}) {
            Gemm args = problem.args(true);
            if (half_a) args.a = {a.data(), args.a.stride, type};
            if (half_b) args.b = {b.data(), args.b.stride, type};
            gemm(args, scratch());
            EXPECT_TRUE(test::same_bits(expected, problem.result())) << half_a << half_b;
          }
        }
      });
    });
  }
}

// y as it is saved: its bits in `type`, and their value.
std::pair<uint32_t, float> kept_twin(DType type, float y) {
  if (type == DType::kF32) return {std::bit_cast<uint32_t>(y), y};
  const uint16_t half = type == DType::kBF16 ? twin::BF16::from_float(y) : twin::F16::from_float(y);
  return {half, type == DType::kBF16 ? twin::BF16::to_float(half) : twin::F16::to_float(half)};
}

uint32_t element(const std::byte* values, DType type, size_t i) {
  uint32_t bits = 0;
  std::memcpy(&bits, values + i * size_of(type), size_of(type));
  return bits;
}

float activation_twin(Epilogue epilogue, float y) {
  if (epilogue == Epilogue::kBiasGelu) return twin::gelu(y);
  if (epilogue == Epilogue::kBiasRelu2) return twin::relu2(y);
  return y;
}

// Checks the saved values and the C that follows from them, given the product x without an epilogue: in one call, and
// in the blocks that members of a team would take.
void expect_kept(Problem& problem, Size size, Epilogue epilogue, DType type, const std::vector<float>& x,
                 const float* bias) {
  std::vector<float> expected_c;
  std::vector<uint32_t> expected_kept;
  for (size_t e = 0; e < x.size(); ++e) {
    const auto [bits, value] = kept_twin(type, epilogue == Epilogue::kNone ? x[e] : x[e] + bias[e % size.N]);
    expected_kept.push_back(bits);
    expected_c.push_back(activation_twin(epilogue, value));
  }
  for (const bool blocks : {false, true}) {
    Gemm args = problem.args();
    Bytes saved(size.M * args.c_stride, type);
    const Bytes untouched = saved;
    args.epilogue = epilogue;
    args.bias = bias;
    args.saved = {saved.data(), type};
    const size_t row = blocks ? size.M / 2 : 0, column = blocks && size.N > kPanelColumns ? kPanelColumns : 0;
    for (const Range rows : {Range{0, row}, Range{row, size.M}}) {
      for (const Range columns : {Range{0, column}, Range{column, size.N}}) {
        gemm(block_of(args, rows, columns), scratch());
      }
    }
    EXPECT_TRUE(test::same_bits(expected_c, problem.result())) << blocks;
    const std::byte* found = static_cast<const std::byte*>(saved.data());
    for (size_t e = 0; e < size.M * args.c_stride; ++e) {
      const size_t i = e / args.c_stride, j = e % args.c_stride;
      const uint32_t gap = element(untouched.span().data(), type, e);
      ASSERT_EQ(element(found, type, e), j < size.N ? expected_kept[i * size.N + j] : gap) << i << ", " << j;
    }
  }
}

TEST(GemmStorage, CIsComputedFromTheSavedValues) {
  for_each_problem([](Layout layout, Size size) {
    Problem problem(layout, size);
    const Placed bias(test::normal(size.N, 7), 1);
    const std::vector<float> twin = problem.twin(false);
    test::for_each_target([&](const Target& target) {
      gemm(problem.args(), scratch());
      const std::vector<float> x = target.fma ? twin : problem.result();
      for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
        expect_kept(problem, size, Epilogue::kNone, type, x, bias.data());
        expect_kept(problem, size, Epilogue::kBias, type, x, bias.data());
        expect_kept(problem, size, Epilogue::kBiasRelu2, type, x, bias.data());
        if (target.fma) expect_kept(problem, size, Epilogue::kBiasGelu, type, x, bias.data());
      }
    });
  });
}

// fp16 ends at 65504: what overflows is infinite in C too, and its activation is infinite or almost 0.
TEST(GemmStorage, OverflowInSavedValuesReachesC) {
  const Size size{9, 50, 20};
  Problem problem(Layout::kNN, size);
  for (float& x : problem.a_values().span()) x *= 3e4f;
  const std::vector<float> bias(size.N, 0.5f);
  test::for_each_target([&](const Target& target) {
    if (!target.fma) return;
    const std::vector<float> x = problem.twin(false);
    for (const Epilogue epilogue : kEpilogues) {
      expect_kept(problem, size, epilogue, DType::kF16, x, bias.data());
      const std::vector<float> c = problem.result();
      EXPECT_GT(std::ranges::count_if(c, [](float value) { return std::isinf(value); }), 10);
      EXPECT_EQ(std::ranges::count_if(c, [](float value) { return std::isnan(value); }), 0);
    }
  });
}

// A NaN takes a way of its own through the rounding; its neighbours must not notice.
TEST(GemmStorage, NanInSavedValuesReachesOnlyItsElementOfC) {
  const Size size{16, 100, 20};
  Problem problem(Layout::kNN, size);
  for (size_t i = 0; i < size.M; i += 3) problem.a_values()[i * problem.args().a.stride + i] = std::nanf("");
  const std::vector<float> bias = test::normal(size.N, 7);
  test::for_each_target([&](const Target& target) {
    if (!target.fma) return;
    for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const Epilogue epilogue : kEpilogues) {
        expect_kept(problem, size, epilogue, type, problem.twin(false), bias.data());
      }
    }
  });
}

}  // namespace
}  // namespace quern::kernels
