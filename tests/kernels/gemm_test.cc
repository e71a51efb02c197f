#include "kernels/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/gemm_problem.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

using test::Placed;

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

TEST(Gemm, AlignmentIsBitIdentical) {
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

TEST(Gemm, PackedOperandIsBitIdentical) {
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

float epilogue_twin(Epilogue epilogue, float x, float bias) {
  switch (epilogue) {
    case Epilogue::kNone:
      return x;
    case Epilogue::kBias:
      return x + bias;
    case Epilogue::kBiasGelu:
      return twin::gelu(x + bias);
    case Epilogue::kBiasRelu2:
      return twin::relu2(x + bias);
  }
  return 0;
}

TEST(Gemm, EpiloguesEqualTheTwin) {
  for (const Epilogue epilogue : {Epilogue::kBias, Epilogue::kBiasGelu, Epilogue::kBiasRelu2}) {
    for_each_problem([epilogue](Layout layout, Size size) {
      Problem problem(layout, size);
      const Placed bias(test::normal(size.N, 7), 1);
      std::vector<float> expected = problem.twin(false);
      for (size_t i = 0; i < size.M; ++i) {
        for (size_t j = 0; j < size.N; ++j) {
          float& x = expected[i * size.N + j];
          x = epilogue_twin(epilogue, x, bias.data()[j]);
        }
      }
      test::for_each_target([&](const Target& target) {
        Gemm args = problem.args();
        args.epilogue = epilogue;
        args.bias = bias.data();
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
TEST(Gemm, SplittingBetweenThreadsIsBitIdentical) {
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
      EXPECT_TRUE(test::same_bits(tiny.twin(false), tiny.result()));  // subnormal sums are not flushed
    }
  });
}

}  // namespace
}  // namespace quern::kernels
