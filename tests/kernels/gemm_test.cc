#include "kernels/gemm.h"

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "kernels/convert.h"
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

// 16-bit operands are widened exactly, so the product is that of the widened matrices, bit for bit.
TEST(Gemm, HalfOperandsGiveTheProductOfTheirValues) {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for_each_problem([type](Layout layout, Size size) {
      Problem problem(layout, size);
      const auto narrow = [type](Placed& values) {
        std::vector<Half> half(values.span().size());
        (type == DType::kBF16 ? to_bf16 : to_f16)(values.data(), half.data(), half.size());
        (type == DType::kBF16 ? from_bf16 : from_f16)(half.data(), values.data(), half.size());
        return half;
      };
      const std::vector<Half> a = narrow(problem.a_values()), b = narrow(problem.b_values());
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
      Placed input(size.M * problem.c_stride(), kUntouched, 0);
      std::vector<float> expected = problem.twin(false), expected_input;
      for (size_t i = 0; i < size.M; ++i) {
        for (size_t j = 0; j < size.N; ++j) {
          float& x = expected[i * size.N + j];
          expected_input.push_back(x + bias.data()[j]);
          x = epilogue_twin(epilogue, x, bias.data()[j], residual.data()[i * problem.c_stride() + j]);
        }
      }
      test::for_each_target([&](const Target& target) {
        Gemm args = problem.args();
        args.epilogue = epilogue;
        args.bias = bias.data();
        args.residual = residual.data();
        args.gelu_input = epilogue == Epilogue::kBiasGelu ? input.data() : nullptr;
        gemm(args, scratch());
        const std::vector<float> found = problem.result();
        EXPECT_TRUE(test::close(expected, found, 1e-4));
        if (!target.fma) return;
        EXPECT_TRUE(test::same_bits(expected, found));
        for (size_t e = 0; epilogue == Epilogue::kBiasGelu && e < expected_input.size(); ++e) {
          ASSERT_EQ(input[e / size.N * problem.c_stride() + e % size.N], expected_input[e]);
        }
      });
    });
  }
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
