#include "kernels/rmsnorm.h"

#include <array>
#include <limits>

#include "kernels/stored.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

// Complete and incomplete groups of 16.
constexpr std::array<size_t, 15> kSizes = {1, 2, 3, 15, 16, 17, 24, 31, 33, 64, 100, 127, 128, 129, 257};

constexpr std::array<DType, 3> kTypes = {DType::kF32, DType::kBF16, DType::kF16};

constexpr float kEpsilon = 1e-6f;

struct Forward {
  std::vector<float> out, normal, reciprocal, sum;  // normal: the saved values, widened
};

struct Gradients {
  std::vector<float> dx, dweight;
};

struct Inputs {
  size_t rows, C;
  std::vector<float> x, delta, weight, dout;  // weight: empty for none
  Gradients before;                           // what the gradients are added to
  bool add = true;

  const float* weight_or_null() const { return weight.empty() ? nullptr : weight.data(); }
  float weight_at(size_t c) const { return weight.empty() ? 1.0f : weight[c]; }
};

Inputs inputs_of(size_t rows, size_t C, bool weighted = true) {
  const size_t weights = weighted ? C : 0;
  return {rows,
          C,
          test::normal(rows * C, 1),
          test::normal(rows * C, 2),
          test::normal(weights, 3),
          test::normal(rows * C, 5),
          {test::normal(rows * C, 6), test::normal(weights, 7)}};
}

// ---- the twin: the same operations in the same order, one element at a time

Forward twin_forward(DType type, const Inputs& in, const std::vector<float>& x) {
  Forward f{std::vector<float>(x.size()), std::vector<float>(x.size()), std::vector<float>(in.rows), x};
  for (size_t r = 0; r < in.rows; ++r) {
    const float* row = &x[r * in.C];
    twin::Lanes squares;
    for (size_t c = 0; c < in.C; ++c) squares.at(c) = std::fma(row[c], row[c], squares.at(c));
    f.reciprocal[r] = 1.0f / std::sqrt(squares.sum() / static_cast<float>(in.C) + kEpsilon);
    for (size_t c = 0; c < in.C; ++c) {
      const float normal = rounded(type, row[c] * f.reciprocal[r]);
      f.normal[r * in.C + c] = normal;
      f.out[r * in.C + c] = normal * in.weight_at(c);
    }
  }
  return f;
}

Gradients twin_backward(const Inputs& in, const Forward& f) {
  Gradients g = in.before;
  for (size_t r = 0; r < in.rows; ++r) {
    const float* normal = &f.normal[r * in.C];
    const float* dout = &in.dout[r * in.C];
    twin::Lanes products;
    for (size_t c = 0; c < in.C; ++c) {
      products.at(c) = std::fma(dout[c] * in.weight_at(c), normal[c], products.at(c));
    }
    const float slope = -(products.sum() / static_cast<float>(in.C));
    for (size_t c = 0; c < in.C; ++c) {
      const float inner = std::fma(slope, normal[c], dout[c] * in.weight_at(c));
      float& dx = g.dx[r * in.C + c];
      dx = in.add ? std::fma(f.reciprocal[r], inner, dx) : f.reciprocal[r] * inner;
      if (!in.weight.empty()) g.dweight[c] = std::fma(dout[c], normal[c], g.dweight[c]);
    }
  }
  return g;
}

// ---- the naive version, in double precision; no weight if it is empty

std::vector<double> naive_forward(size_t C, const std::vector<double>& x, const std::vector<double>& weight) {
  std::vector<double> out(x.size());
  for (size_t first = 0; first < x.size(); first += C) {
    double square = 0;
    for (size_t c = 0; c < C; ++c) square += std::pow(x[first + c], 2) / static_cast<double>(C);
    const double reciprocal = 1 / std::sqrt(square + static_cast<double>(kEpsilon));
    for (size_t c = 0; c < C; ++c) out[first + c] = x[first + c] * reciprocal * (weight.empty() ? 1.0 : weight[c]);
  }
  return out;
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<double> naive_forward(const Inputs& in, const std::vector<float>& x) {
  return naive_forward(in.C, doubles(x), doubles(in.weight));
}

// ---- the kernels

Forward run_forward(const Inputs& in, size_t offset = 0, DType type = DType::kF32) {
  const test::Placed x(in.x, offset), weight(in.weight, offset / 2);
  test::Placed out(in.x.size(), -7.0f, offset), reciprocal(in.rows, -7.0f, 2);
  Stored normal(type, in.x.size(), offset);
  rmsnorm_forward(x.data(), out.data(), {normal.at(0), type, reciprocal.data()}, in.rows, in.C,
                  {kEpsilon, in.weight.empty() ? nullptr : weight.data()});
  return {out.copy(), normal.copy(), reciprocal.copy(), in.x};
}

Forward run_residual(const Inputs& in, size_t offset = 0, DType type = DType::kF32) {
  const test::Placed x(in.x, offset), delta(in.delta, offset / 2);
  test::Placed out(in.x.size(), -7.0f, offset), sum(in.x.size(), -7.0f, offset / 3), reciprocal(in.rows, -7.0f, 2);
  Stored normal(type, in.x.size(), offset);
  residual_rmsnorm_forward(x.data(), delta.data(), sum.data(), out.data(), {normal.at(0), type, reciprocal.data()},
                           in.rows, in.C, {kEpsilon, in.weight_or_null()});
  return {out.copy(), normal.copy(), reciprocal.copy(), sum.copy()};
}

// Backward on the rows before `cut`, then on the others.
Gradients run_backward(const Inputs& in, const Forward& f, size_t offset = 0, DType type = DType::kF32,
                       size_t cut = 0) {
  const test::Placed dout(in.dout, offset / 3);
  test::Placed reciprocal(f.reciprocal, 2), dx(in.before.dx, offset), dweight(in.before.dweight, 3);
  Stored normal(type, f.normal, offset);
  const auto rows = [&](size_t first, size_t count) {
    rmsnorm_backward({.saved = {normal.at(first * in.C), type, reciprocal.data() + first},
                      .weight = in.weight_or_null(),
                      .dout = dout.data() + first * in.C,
                      .dx = dx.data() + first * in.C,
                      .dweight = in.weight.empty() ? nullptr : dweight.data(),
                      .add = in.add},
                     count, in.C);
  };
  rows(0, cut);
  rows(cut, in.rows - cut);
  return {dx.copy(), dweight.copy()};
}

void expect_same(const Forward& expected, const Forward& found) {
  EXPECT_TRUE(test::same_bits(expected.normal, found.normal)) << "normal";
  EXPECT_TRUE(test::same_bits(expected.reciprocal, found.reciprocal)) << "reciprocal";
  EXPECT_TRUE(test::same_bits(expected.sum, found.sum)) << "sum";
  EXPECT_TRUE(test::same_bits(expected.out, found.out)) << "out";
}

void expect_same(const Gradients& expected, const Gradients& found) {
  EXPECT_TRUE(test::same_bits(expected.dx, found.dx)) << "dx";
  EXPECT_TRUE(test::same_bits(expected.dweight, found.dweight)) << "dweight";
}

std::vector<float> sum_of(const Inputs& in) {
  std::vector<float> sum = in.x;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += in.delta[i];
  return sum;
}

template <typename Body>  // body(inputs, offset, type)
void for_each_shape(Body body) {
  for (const size_t C : kSizes) {
    for (const size_t rows : {1, 2, 5}) {
      for (const bool weighted : {true, false}) {
        const Inputs in = inputs_of(rows, C, weighted);
        for (const size_t offset : {0, 9}) {
          for (const DType type : kTypes) {
            SCOPED_TRACE("rows " + std::to_string(rows) + ", C " + std::to_string(C) + ", weighted " +
                         std::to_string(weighted) + ", offset " + std::to_string(offset) + ", type " +
                         std::to_string(static_cast<int>(type)));
            body(in, offset, type);
          }
        }
      }
    }
  }
}

// A normalized input below 8 is rounded by at most 8 / 2^9 in bf16, 8 / 2^12 in fp16; weights are below 4.
double tolerance_of(DType type) {
  return 2e-6 + (type == DType::kF32 ? 0 : type == DType::kBF16 ? 32 * 0x1p-9 : 32 * 0x1p-12);
}

TEST(Rmsnorm, ForwardMatchesTwins) {
  test::for_each_target([&](const Target& target) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_forward(in, offset, type);
      if (target.fma) expect_same(twin_forward(type, in, in.x), f);
      EXPECT_TRUE(test::close(naive_forward(in, in.x), f.out, tolerance_of(type)));
    });
  });
}

TEST(Rmsnorm, ResidualForwardMatchesTwins) {
  test::for_each_target([&](const Target& target) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_residual(in, offset, type);
      EXPECT_TRUE(test::same_bits(sum_of(in), f.sum));
      if (target.fma) expect_same(twin_forward(type, in, sum_of(in)), f);
      EXPECT_TRUE(test::close(naive_forward(in, sum_of(in)), f.out, tolerance_of(type)));
    });
  });
}

TEST(Rmsnorm, ApplyReproducesForward) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_residual(in, offset, type);
      test::Placed out(in.x.size(), -7.0f, offset / 2);
      Stored normal(type, f.normal, offset);
      rmsnorm_apply(normal.at(0), type, in.weight_or_null(), out.data(), in.rows, in.C);
      EXPECT_TRUE(test::same_bits(f.out, out.span()));
    });
  });
}

TEST(Rmsnorm, OutputIsTheSameWhateverIsSaved) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_forward(in, 0, type), residual = run_residual(in, 0, type);
      const RmsnormOptions options{kEpsilon, in.weight_or_null()};
      test::Placed out(in.x.size(), -7.0f, offset), sum(in.x, offset), reciprocal(in.rows, -7.0f, 1);
      Stored normal(type, in.x.size(), offset);
      rmsnorm_forward(in.x.data(), out.data(), {nullptr, type, nullptr}, in.rows, in.C, options);
      EXPECT_TRUE(test::same_bits(f.out, out.span()));
      rmsnorm_forward(in.x.data(), out.data(), {nullptr, type, reciprocal.data()}, in.rows, in.C, options);
      EXPECT_TRUE(test::same_bits(f.reciprocal, reciprocal.span()));
      rmsnorm_forward(in.x.data(), out.data(), {normal.at(0), type, nullptr}, in.rows, in.C, options);
      EXPECT_TRUE(test::same_bits(f.normal, normal.copy()));
      residual_rmsnorm_forward(sum.data(), in.delta.data(), sum.data(), out.data(), {nullptr, type, nullptr}, in.rows,
                               in.C, options);
      EXPECT_TRUE(test::same_bits(residual.out, out.span()));
    });
  });
}

TEST(Rmsnorm, BackwardMatchesTwin) {
  test::for_each_target([&](const Target& target) {
    for_each_shape([&](Inputs in, size_t offset, DType type) {
      const Forward f = run_forward(in, 0, type);
      for (const bool add : {true, false}) {
        in.add = add;
        const Gradients expected = twin_backward(in, f), found = run_backward(in, f, offset, type);
        if (target.fma) {
          expect_same(expected, found);
          continue;
        }
        // With one feature, g and n mean(g n) cancel, and a small x gives a large reciprocal.
        const double tolerance = in.C < 16 ? 1e-4 : 1e-5;
        EXPECT_TRUE(test::close(expected.dx, found.dx, tolerance));
        EXPECT_TRUE(test::close(expected.dweight, found.dweight, tolerance));
      }
    });
  });
}

TEST(Rmsnorm, BackwardMatchesFiniteDifferences) {
  for (const size_t C : {5, 16, 33, 130}) {
    for (const bool weighted : {true, false}) {
      const size_t rows = 3;
      Inputs in = inputs_of(rows, C, weighted);
      in.before = {std::vector<float>(rows * C, 0.0f), std::vector<float>(in.weight.size(), 0.0f)};
      std::vector<double> x = doubles(in.x), weight = doubles(in.weight);
      const auto loss = [&] {
        const std::vector<double> out = naive_forward(C, x, weight);
        double sum = 0;
        for (size_t i = 0; i < out.size(); ++i) sum += out[i] * static_cast<double>(in.dout[i]);
        return sum;
      };
      const auto slopes = [&](std::vector<double>& values) {
        std::vector<double> result;
        for (double& value : values) result.push_back(test::derivative(loss, value));
        return result;
      };
      const std::vector<double> dx = slopes(x), dweight = slopes(weight);
      test::for_each_target([&](const Target&) {
        for (const bool add : {true, false}) {
          in.add = add;
          const Gradients found = run_backward(in, run_forward(in));
          EXPECT_TRUE(test::close(dx, found.dx, 1e-5)) << "dx, C = " << C;
          EXPECT_TRUE(test::close(dweight, found.dweight, 1e-5)) << "dweight, C = " << C;
        }
      });
    }
  }
}

TEST(Rmsnorm, ZeroRowsStayZero) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {1, 16, 48, 100}) {
      Inputs in = inputs_of(2, C);
      in.x.assign(2 * C, 0.0f);
      const Forward f = run_forward(in);
      for (size_t i = 0; i < 2 * C; ++i) EXPECT_EQ(f.out[i], 0.0f);
      EXPECT_EQ(f.reciprocal[1], 1.0f / std::sqrt(kEpsilon));
    }
  });
}

TEST(Rmsnorm, TinyAndHugeRows) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {40, 160}) {
      for (const float factor : {1e-30f, 1e-3f, 1e4f, 1e15f}) {
        Inputs in = inputs_of(2, C);
        for (float& value : in.x) value *= factor;
        EXPECT_TRUE(test::close(naive_forward(in, in.x), run_forward(in).out, 4e-6)) << C << ", factor " << factor;
      }
    }
  });
}

// An infinite input makes the reciprocal 0: its own element is inf * 0, the others are 0.
TEST(Rmsnorm, NanAndInfinityAffectOnlyTheirRow) {
  test::for_each_target([&](const Target&) {
    for (const DType type : kTypes) {
      for (const size_t C : {20, 133}) {
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
          Inputs in = inputs_of(6, C);
          const Forward good = run_forward(in, 0, type);
          in.x[2 * C + C - 1] = bad;
          const Forward f = run_forward(in, 0, type);
          EXPECT_TRUE(std::isnan(f.out[3 * C - 1]) && std::isnan(f.normal[3 * C - 1]));
          for (size_t c = 0; c < C && std::isnan(bad); ++c) EXPECT_TRUE(std::isnan(f.out[2 * C + c])) << c;
          for (const size_t row : {0, 1, 3, 4, 5}) {
            EXPECT_TRUE(test::same_bits(std::span(good.out).subspan(row * C, C), std::span(f.out).subspan(row * C, C)));
          }
        }
      }
    }
  });
}

TEST(Rmsnorm, BackwardPropagatesNanWithinItsRow) {
  const size_t C = 37;
  test::for_each_target([&](const Target&) {
    for (const bool add : {true, false}) {
      Inputs in = inputs_of(3, C, false);
      in.add = add;
      const Forward f = run_forward(in);
      const Gradients good = run_backward(in, f);
      in.dout[C + 20] = std::numeric_limits<float>::quiet_NaN();
      const Gradients found = run_backward(in, f);
      for (size_t c = 0; c < C; ++c) EXPECT_TRUE(std::isnan(found.dx[C + c])) << c;
      for (const size_t row : {0, 2}) {
        EXPECT_TRUE(test::same_bits(std::span(good.dx).subspan(row * C, C), std::span(found.dx).subspan(row * C, C)));
      }
    }
  });
}

TEST(Rmsnorm, InPlaceGivesTheSame) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const RmsnormOptions options{kEpsilon, in.weight_or_null()};
      test::Placed values(in.x, offset);
      std::vector<float> reciprocal(in.rows), out(in.x.size());
      Stored normal(type, in.x.size(), 0);
      const RmsnormSaved saved{normal.at(0), type, reciprocal.data()};
      rmsnorm_forward(values.data(), values.data(), saved, in.rows, in.C, options);
      expect_same(run_forward(in, 0, type), {values.copy(), normal.copy(), reciprocal, in.x});

      test::Placed sum(in.x, offset);
      residual_rmsnorm_forward(sum.data(), in.delta.data(), sum.data(), out.data(), saved, in.rows, in.C, options);
      expect_same(run_residual(in, 0, type), {out, normal.copy(), reciprocal, sum.copy()});
    });
  });
}

// Without `add` in place of dout, and with it on top of dout.
TEST(Rmsnorm, BackwardInPlaceOfDout) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](Inputs in, size_t offset, DType type) {
      Forward f = run_forward(in, 0, type);
      in.before.dx = in.dout;
      Stored normal(type, f.normal, 0);
      for (const bool add : {true, false}) {
        in.add = add;
        Gradients found = in.before;
        test::Placed dx(in.dout, offset);
        rmsnorm_backward({.saved = {normal.at(0), type, f.reciprocal.data()},
                          .weight = in.weight_or_null(),
                          .dout = dx.data(),
                          .dx = dx.data(),
                          .dweight = in.weight.empty() ? nullptr : found.dweight.data(),
                          .add = add},
                         in.rows, in.C);
        found.dx = dx.copy();
        expect_same(run_backward(in, f, 0, type), found);
      }
    });
  });
}

TEST(Rmsnorm, SplittingRowsIsBitIdentical) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {17, 128, 200}) {
      const Inputs in = inputs_of(9, C);
      const Forward f = run_forward(in);
      const Gradients whole = run_backward(in, f);
      for (size_t cut = 1; cut <= in.rows; ++cut) expect_same(whole, run_backward(in, f, 0, DType::kF32, cut));
      Inputs last = inputs_of(1, C);
      last.x.assign(in.x.end() - static_cast<ptrdiff_t>(C), in.x.end());
      EXPECT_TRUE(test::same_bits(run_forward(last).out, std::span(f.out).last(C)));
    }
  });
}

TEST(Rmsnorm, NoRowsTouchNothing) {
  test::for_each_target([&](const Target&) {
    for (const DType type : kTypes) {
      const RmsnormSaved saved{nullptr, type, nullptr};
      rmsnorm_forward(nullptr, nullptr, saved, 0, 16, {});
      residual_rmsnorm_forward(nullptr, nullptr, nullptr, nullptr, saved, 0, 512, {});
      rmsnorm_apply(nullptr, type, nullptr, nullptr, 0, 16);
      rmsnorm_backward({.saved = saved, .dout = nullptr, .dx = nullptr}, 0, 16);
    }
  });
}

}  // namespace
}  // namespace quern::kernels
