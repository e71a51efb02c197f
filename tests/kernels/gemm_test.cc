#include "kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/convert.h"
#include "support/half.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

using test::Placed;

constexpr float kUntouched = 12345.0f;

struct Size {
  size_t M, N, K;
};

// Every edge of the tiles (6 and 8 rows, 8 to 48 columns), of vectors, and of the blocks of depth and rows; products of
// several panels and groups that tiles fetch ahead.
const std::vector<Size> kSizes = {{1, 1, 1},     {2, 3, 5},     {6, 16, 8},    {7, 17, 9},    {8, 48, 16},
                                  {9, 49, 31},   {13, 50, 33},  {1, 100, 64},  {33, 100, 17}, {65, 7, 40},
                                  {20, 33, 520}, {16, 96, 400}, {270, 20, 30}, {300, 51, 7},  {5, 200, 770},
                                  {70, 112, 60}, {71, 150, 90}, {40, 100, 800}};

const Layout kLayouts[] = {Layout::kNN, Layout::kNT, Layout::kTN};

std::vector<float>& scratch() {
  static std::vector<float> values(kGemmScratch);
  return values;
}

// A problem with strides larger than the rows, operands `offset` floats off alignment, and C's gaps marked.
class Problem {
 public:
  Problem(Layout layout, Size size, size_t offset = 0, unsigned seed = 1)
      : layout_(layout),
        size_(size),
        a_cols_(layout == Layout::kTN ? size.M : size.K),
        b_cols_(layout == Layout::kNT ? size.K : size.N),
        a_(test::normal((layout == Layout::kTN ? size.K : size.M) * (a_cols_ + 3), seed), offset),
        b_(test::normal((layout == Layout::kNT ? size.N : size.K) * (b_cols_ + 1), seed + 1), offset),
        c_(size.M * c_stride(), kUntouched, offset),
        old_(test::normal(size.M * size.N, seed + 2)) {}

  size_t c_stride() const { return size_.N + 2; }
  float a(size_t i, size_t k) const {
    return layout_ == Layout::kTN ? a_.data()[k * (a_cols_ + 3) + i] : a_.data()[i * (a_cols_ + 3) + k];
  }
  float b(size_t k, size_t j) const {
    return layout_ == Layout::kNT ? b_.data()[j * (b_cols_ + 1) + k] : b_.data()[k * (b_cols_ + 1) + j];
  }
  float old(size_t i, size_t j) const { return old_[i * size_.N + j]; }

  Gemm args(bool add = false) {
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < size_.N; ++j) c_[i * c_stride() + j] = add ? old(i, j) : std::nanf("");
    }
    return {.layout = layout_,
            .M = size_.M,
            .N = size_.N,
            .K = size_.K,
            .a = {a_.data(), a_cols_ + 3},
            .b = {b_.data(), b_cols_ + 1},
            .c = c_.data(),
            .c_stride = c_stride(),
            .add = add};
  }

  // C without its gaps, which must be as they were.
  std::vector<float> result() {
    std::vector<float> values;
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < c_stride(); ++j) {
        const float value = c_[i * c_stride() + j];
        if (j < size_.N) {
          values.push_back(value);
        } else {
          EXPECT_EQ(value, kUntouched) << "row " << i << ", column " << j << " lies outside C";
        }
      }
    }
    return values;
  }

  // One chain of fused multiply-adds per element, over k in order: the contract of gemm.h.
  std::vector<float> twin(bool add) const {
    std::vector<float> values;
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < size_.N; ++j) {
        float sum = add ? old(i, j) : 0.0f;
        for (size_t k = 0; k < size_.K; ++k) sum = std::fma(a(i, k), b(k, j), sum);
        values.push_back(sum);
      }
    }
    return values;
  }

  std::vector<double> reference(bool add) const {
    std::vector<double> values;
    for (size_t i = 0; i < size_.M; ++i) {
      for (size_t j = 0; j < size_.N; ++j) {
        double sum = add ? old(i, j) : 0.0;
        for (size_t k = 0; k < size_.K; ++k) sum += static_cast<double>(a(i, k)) * b(k, j);
        values.push_back(sum);
      }
    }
    return values;
  }

  Placed& a_values() { return a_; }
  Placed& b_values() { return b_; }

 private:
  Layout layout_;
  Size size_;
  size_t a_cols_, b_cols_;
  Placed a_, b_, c_;
  std::vector<float> old_;
};

std::string describe(Layout layout, Size s) {
  const char* names[] = {"NN ", "NT ", "TN "};
  return names[static_cast<int>(layout)] + std::to_string(s.M) + "x" + std::to_string(s.N) + "x" + std::to_string(s.K);
}

template <typename Body>
void for_each_problem(Body body) {
  for (const Layout layout : kLayouts) {
    for (const Size size : kSizes) {
      SCOPED_TRACE(describe(layout, size));
      body(layout, size);
    }
  }
}

TEST(Gemm, EqualsTheTwinAndTheDoubleReference) {
  for_each_problem([](Layout layout, Size size) {
    for (const bool add : {false, true}) {
      const size_t offset = size.M % 4;  // aligned and three ways not
      Problem problem(layout, size, offset);
      const std::vector<float> twin = problem.twin(add);
      const std::vector<double> reference = problem.reference(add);
      test::for_each_target([&](const Target& target) {
        gemm(problem.args(add), scratch());
        const std::vector<float> found = problem.result();
        if (target.fma) {
          EXPECT_TRUE(test::same_bits(twin, found));
        }
        EXPECT_TRUE(test::close(reference, found, 1e-5 * std::sqrt(static_cast<double>(size.K) + 10)));
      });
    }
  });
}

TEST(Gemm, AlignmentDoesNotChangeTheBits) {
  for (const Layout layout : kLayouts) {
    Problem aligned(layout, {19, 53, 300}, 0);
    test::for_each_target([&](const Target&) {
      gemm(aligned.args(), scratch());
      const std::vector<float> expected = aligned.result();
      for (size_t offset = 1; offset < 16; ++offset) {
        Problem shifted(layout, {19, 53, 300}, offset);
        gemm(shifted.args(), scratch());
        EXPECT_TRUE(test::same_bits(expected, shifted.result())) << "offset " << offset;
      }
    });
  }
}

TEST(Gemm, PackedOperandGivesTheSameBits) {
  for_each_problem([](Layout layout, Size size) {
    Problem problem(layout, size);
    test::for_each_target([&](const Target&) {
      Gemm args = problem.args();
      gemm(args, scratch());
      const std::vector<float> expected = problem.result();
      std::vector<float> packed(packed_size(size.K, size.N), std::nanf(""));
      pack_b(layout, args.b, size.K, size.N, packed.data());
      args = problem.args();
      args.b = {};
      args.packed_b = packed.data();
      gemm(args, scratch());
      EXPECT_TRUE(test::same_bits(expected, problem.result()));
    });
  });
}

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
TEST(Gemm, HalfPackedOperandGivesTheProductOfTheRounded) {
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
TEST(Gemm, HalfPackingRoundsOnce) {
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
TEST(Gemm, HalfOperandsGiveTheProductOfTheirValues) {
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

float epilogue_twin(Epilogue epilogue, float x, float bias, float residual) {
  switch (epilogue) {
    case Epilogue::kNone:
      return x;
    case Epilogue::kBias:
      return x + bias;
    case Epilogue::kBiasGelu:
      return twin::gelu(x + bias);
    case Epilogue::kResidual:
      return x + residual;
    case Epilogue::kBiasResidual:
      return (x + bias) + residual;
  }
  return 0;
}

TEST(Gemm, EpiloguesEqualTheTwin) {
  for (const Epilogue epilogue : {Epilogue::kBias, Epilogue::kBiasGelu, Epilogue::kResidual, Epilogue::kBiasResidual}) {
    for_each_problem([epilogue](Layout layout, Size size) {
      Problem problem(layout, size);
      const Placed bias(test::normal(size.N, 7), 1);
      const Placed residual(test::normal(size.M * problem.c_stride(), 8), 1);
      std::vector<float> expected = problem.twin(false);
      for (size_t i = 0; i < size.M; ++i) {
        for (size_t j = 0; j < size.N; ++j) {
          float& x = expected[i * size.N + j];
          x = epilogue_twin(epilogue, x, bias.data()[j], residual.data()[i * problem.c_stride() + j]);
        }
      }
      test::for_each_target([&](const Target& target) {
        Gemm args = problem.args();
        args.epilogue = epilogue;
        args.bias = bias.data();
        args.residual = residual.data();
        gemm(args, scratch());
        const std::vector<float> found = problem.result();
        EXPECT_TRUE(test::close(expected, found, 1e-4));
        if (target.fma) {
          EXPECT_TRUE(test::same_bits(expected, found));
        }
      });
    });
  }
}

// y as it is kept: its bits in `type`, and their value.
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

// Checks what is kept and the C that follows from it, given the product x without an epilogue: in one call, and in the
// blocks that members of a team would take.
void expect_kept(Problem& problem, Size size, Epilogue epilogue, DType type, const std::vector<float>& x,
                 const float* bias) {
  std::vector<float> expected_c;
  std::vector<uint32_t> expected_kept;
  for (size_t e = 0; e < x.size(); ++e) {
    const auto [bits, value] = kept_twin(type, epilogue == Epilogue::kNone ? x[e] : x[e] + bias[e % size.N]);
    expected_kept.push_back(bits);
    expected_c.push_back(epilogue == Epilogue::kBiasGelu ? twin::gelu(value) : value);
  }
  for (const bool blocks : {false, true}) {
    Gemm args = problem.args();
    Bytes kept(size.M * args.c_stride, type);
    const Bytes untouched = kept;
    args.epilogue = epilogue;
    args.bias = bias;
    args.kept = {kept.data(), type};
    const size_t row = blocks ? size.M / 2 : 0, column = blocks && size.N > kPanelColumns ? kPanelColumns : 0;
    for (const Range rows : {Range{0, row}, Range{row, size.M}}) {
      for (const Range columns : {Range{0, column}, Range{column, size.N}}) {
        gemm(block_of(args, rows, columns), scratch());
      }
    }
    EXPECT_TRUE(test::same_bits(expected_c, problem.result())) << blocks;
    const std::byte* found = static_cast<const std::byte*>(kept.data());
    for (size_t e = 0; e < size.M * args.c_stride; ++e) {
      const size_t i = e / args.c_stride, j = e % args.c_stride;
      const uint32_t gap = element(untouched.span().data(), type, e);
      ASSERT_EQ(element(found, type, e), j < size.N ? expected_kept[i * size.N + j] : gap) << i << ", " << j;
    }
  }
}

TEST(Gemm, CFollowsFromWhatIsKept) {
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
        if (target.fma) expect_kept(problem, size, Epilogue::kBiasGelu, type, x, bias.data());
      }
    });
  });
}

// fp16 ends at 65504: what overflows is infinite in C too, and its gelu is infinite or almost 0.
TEST(Gemm, KeptOverflowReachesC) {
  const Size size{9, 50, 20};
  Problem problem(Layout::kNN, size);
  for (float& x : problem.a_values().span()) x *= 3e4f;
  const std::vector<float> bias(size.N, 0.5f);
  test::for_each_target([&](const Target& target) {
    if (!target.fma) return;
    const std::vector<float> x = problem.twin(false);
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasGelu}) {
      expect_kept(problem, size, epilogue, DType::kF16, x, bias.data());
      const std::vector<float> c = problem.result();
      EXPECT_GT(std::ranges::count_if(c, [](float value) { return std::isinf(value); }), 10);
      EXPECT_EQ(std::ranges::count_if(c, [](float value) { return std::isnan(value); }), 0);
    }
  });
}

// A NaN takes a way of its own through the rounding; its neighbours must not notice.
TEST(Gemm, KeptNaNIsNaNInCAndChangesNothingElse) {
  const Size size{16, 100, 20};
  Problem problem(Layout::kNN, size);
  for (size_t i = 0; i < size.M; i += 3) problem.a_values()[i * problem.args().a.stride + i] = std::nanf("");
  const std::vector<float> bias = test::normal(size.N, 7);
  test::for_each_target([&](const Target& target) {
    if (!target.fma) return;
    for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasGelu}) {
        expect_kept(problem, size, epilogue, type, problem.twin(false), bias.data());
      }
    }
  });
}

// The residual stream in place: the chains start from C, then the bias joins.
TEST(Gemm, AddWithBiasContinuesFromC) {
  Problem problem(Layout::kNN, {17, 37, 521});
  const std::vector<float> bias = test::normal(37, 9);
  std::vector<float> expected = problem.twin(true);
  for (size_t e = 0; e < expected.size(); ++e) expected[e] += bias[e % 37];
  test::for_each_target([&](const Target& target) {
    Gemm args = problem.args(true);
    args.epilogue = Epilogue::kBias;
    args.bias = bias.data();
    gemm(args, scratch());
    EXPECT_TRUE(test::close(expected, problem.result(), target.fma ? 0.0 : 1e-4));
  });
}

// However the output is cut between threads, each element is the same chain.
TEST(Gemm, CutBetweenThreadsGivesTheSameBits) {
  for (const Layout layout : kLayouts) {
    const Size size{75, 131, 290};
    Problem problem(layout, size);
    test::for_each_target([&](const Target&) {
      gemm(problem.args(), scratch());
      const std::vector<float> whole = problem.result();
      const Gemm args = problem.args();
      const auto part = [&](size_t row, size_t rows, size_t col, size_t cols) {
        Gemm cut = args;
        cut.M = rows;
        cut.N = cols;
        const float* a = static_cast<const float*>(args.a.data);
        const float* b = static_cast<const float*>(args.b.data);
        cut.a.data = layout == Layout::kTN ? a + row : a + row * args.a.stride;
        cut.b.data = layout == Layout::kNT ? b + col * args.b.stride : b + col;
        cut.c = args.c + row * args.c_stride + col;
        std::vector<float> own(kGemmScratch);
        gemm(cut, own);
      };
      std::vector<std::jthread> threads;
      for (const size_t row : {0, 29}) {
        for (const size_t col : {0, 61}) {
          threads.emplace_back(part, row, row == 0 ? 29 : 46, col, col == 0 ? 61 : 70);
        }
      }
      threads.clear();
      EXPECT_TRUE(test::same_bits(whole, problem.result()));
    });
  }
}

// Two calls that add give the bits of one call over both: what accumulation rounds rest on.
TEST(Gemm, AddingContinuesTheChain) {
  Problem problem(Layout::kTN, {30, 50, 120});
  test::for_each_target([&](const Target&) {
    gemm(problem.args(), scratch());
    const std::vector<float> whole = problem.result();
    Gemm first = problem.args();
    first.K = 47;
    gemm(first, scratch());
    Gemm second = first;
    second.K = 120 - 47;
    second.a.data = static_cast<const float*>(first.a.data) + 47 * first.a.stride;
    second.b.data = static_cast<const float*>(first.b.data) + 47 * first.b.stride;
    second.add = true;
    gemm(second, scratch());
    EXPECT_TRUE(test::same_bits(whole, problem.result()));
  });
}

TEST(Gemm, NoDepthGivesZeroOrTheOldValues) {
  test::for_each_target([](const Target&) {
    Problem problem(Layout::kNN, {3, 5, 0});
    gemm(problem.args(), scratch());
    for (const float value : problem.result()) EXPECT_EQ(value, 0.0f);
    gemm(problem.args(true), scratch());
    EXPECT_TRUE(test::same_bits(problem.twin(true), problem.result()));
    Gemm nothing;
    gemm(nothing, scratch());  // M = N = 0 touches no pointer
  });
}

TEST(Gemm, InfinityAndNaNStayInTheirRowAndColumn) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Layout layout : kLayouts) {
    Problem problem(layout, {9, 50, 20});
    const auto spoil = [&](Placed& values, size_t row, size_t col, size_t stride, bool transposed, float value) {
      values[transposed ? col * stride + row : row * stride + col] = value;
    };
    const Gemm shape = problem.args();
    spoil(problem.a_values(), 4, 7, shape.a.stride, layout == Layout::kTN, std::nanf(""));
    spoil(problem.a_values(), 2, 3, shape.a.stride, layout == Layout::kTN, inf);
    spoil(problem.b_values(), 11, 49, shape.b.stride, layout == Layout::kNT, -inf);
    test::for_each_target([&](const Target&) {
      gemm(problem.args(), scratch());
      const std::vector<float> found = problem.result();
      for (size_t i = 0; i < 9; ++i) {
        for (size_t j = 0; j < 50; ++j) {
          const float x = found[i * 50 + j];
          if (i == 4) {
            EXPECT_TRUE(std::isnan(x));
          } else {
            EXPECT_EQ(std::isfinite(x), i != 2 && j != 49) << i << ", " << j;
          }
        }
      }
    });
  }
}

TEST(Gemm, HugeAndTinyValuesFollowIeee) {
  Problem problem(Layout::kNN, {7, 33, 12});
  for (float& x : problem.a_values().span()) x *= 1e25f;
  for (float& x : problem.b_values().span()) x *= 1e25f;
  Problem tiny(Layout::kNN, {7, 33, 12});
  for (float& x : tiny.a_values().span()) x *= 1e-22f;
  for (float& x : tiny.b_values().span()) x *= 1e-20f;
  test::for_each_target([&](const Target& target) {
    gemm(problem.args(), scratch());
    for (const float x : problem.result()) EXPECT_FALSE(std::isfinite(x));
    gemm(tiny.args(), scratch());
    if (target.fma) {
      EXPECT_TRUE(test::same_bits(tiny.twin(false), tiny.result()));  // subnormal sums are kept
    }
  });
}

}  // namespace
}  // namespace quern::kernels
