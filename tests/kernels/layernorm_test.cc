#include "kernels/layernorm.h"

#include <array>
#include <limits>

#include "kernels/stored.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

// Complete and incomplete groups of 16.
constexpr std::array<size_t, 19> kSizes = {1,   2,   3,   15,  16,  17,  31,  33,  48, 100,
                                           112, 127, 128, 129, 143, 144, 200, 257, 512};

constexpr std::array<DType, 3> kTypes = {DType::kF32, DType::kBF16, DType::kF16};

struct Forward {
  std::vector<float> out, normal, reciprocal, sum;  // normal: the saved values, widened
};

struct Gradients {
  std::vector<float> dx, dweight, dbias;
};

struct Inputs {
  size_t rows, C;
  std::vector<float> x, delta, weight, bias, dout;
  Gradients before;  // what the gradients are added to
};

Inputs inputs_of(size_t rows, size_t C, float shift = 0.0f) {
  Inputs in{rows,
            C,
            test::normal(rows * C, 1),
            test::normal(rows * C, 2),
            test::normal(C, 3),
            test::normal(C, 4),
            test::normal(rows * C, 5),
            {test::normal(rows * C, 6), test::normal(C, 7), test::normal(C, 8)}};
  for (float& value : in.x) value += shift;
  return in;
}

// ---- the twin: the same operations in the same order, one element at a time

void twin_statistics(const float* x, size_t C, float& mean, float& squares) {
  twin::Lanes sum, square;
  for (size_t c = 0; c < C; ++c) sum.at(c) += x[c];
  mean = sum.sum() / static_cast<float>(C);
  for (size_t c = 0; c < C; ++c) square.at(c) = std::fma(x[c] - mean, x[c] - mean, square.at(c));
  squares = square.sum();
}

Forward twin_forward(DType type, const Inputs& in, const std::vector<float>& x) {
  Forward f{std::vector<float>(x.size()), std::vector<float>(x.size()), std::vector<float>(in.rows), x};
  for (size_t r = 0; r < in.rows; ++r) {
    const float* row = &x[r * in.C];
    float mean = 0, squares = 0;
    twin_statistics(row, in.C, mean, squares);
    f.reciprocal[r] = 1.0f / std::sqrt(squares / static_cast<float>(in.C) + kLayernormEpsilon);
    for (size_t c = 0; c < in.C; ++c) {
      const float normal = rounded(type, (row[c] - mean) * f.reciprocal[r]);
      f.normal[r * in.C + c] = normal;
      f.out[r * in.C + c] = std::fma(normal, in.weight[c], in.bias[c]);
    }
  }
  return f;
}

Gradients twin_backward(const Inputs& in, const Forward& f) {
  Gradients g = in.before;
  const float features = static_cast<float>(in.C);
  for (size_t r = 0; r < in.rows; ++r) {
    const float* normal = &f.normal[r * in.C];
    const float* dout = &in.dout[r * in.C];
    const float reciprocal = f.reciprocal[r];
    twin::Lanes gradients, products;
    for (size_t c = 0; c < in.C; ++c) {
      const float gradient = dout[c] * in.weight[c];
      gradients.at(c) += gradient;
      products.at(c) = std::fma(gradient, normal[c], products.at(c));
    }
    const float offset = -(reciprocal * (gradients.sum() / features));
    const float slope = -(reciprocal * (products.sum() / features));
    for (size_t c = 0; c < in.C; ++c) {
      g.dx[r * in.C + c] += std::fma(reciprocal, dout[c] * in.weight[c], std::fma(slope, normal[c], offset));
      g.dweight[c] = std::fma(dout[c], normal[c], g.dweight[c]);
      g.dbias[c] += dout[c];
    }
  }
  return g;
}

// ---- the naive version, in double precision

std::vector<double> naive_forward(size_t C, const std::vector<double>& x, const std::vector<double>& weight,
                                  const std::vector<double>& bias) {
  std::vector<double> out(x.size());
  for (size_t first = 0; first < x.size(); first += C) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < C; ++c) mean += x[first + c] / static_cast<double>(C);
    for (size_t c = 0; c < C; ++c) variance += std::pow(x[first + c] - mean, 2) / static_cast<double>(C);
    const double reciprocal = 1 / std::sqrt(variance + static_cast<double>(kLayernormEpsilon));
    for (size_t c = 0; c < C; ++c) out[first + c] = (x[first + c] - mean) * reciprocal * weight[c] + bias[c];
  }
  return out;
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<double> naive_forward(const Inputs& in, const std::vector<float>& x) {
  return naive_forward(in.C, doubles(x), doubles(in.weight), doubles(in.bias));
}

// ---- the kernels

Forward run_forward(const Inputs& in, size_t offset = 0, DType type = DType::kF32) {
  const test::Placed x(in.x, offset), weight(in.weight, offset / 2), bias(in.bias, offset / 3);
  test::Placed out(in.x.size(), -7.0f, offset), reciprocal(in.rows, -7.0f, 2);
  Stored normal(type, in.x.size(), offset);
  layernorm_forward(x.data(), weight.data(), bias.data(), out.data(), {normal.at(0), type, reciprocal.data()}, in.rows,
                    in.C);
  return {out.copy(), normal.copy(), reciprocal.copy(), in.x};
}

Forward run_residual(const Inputs& in, size_t offset = 0, DType type = DType::kF32) {
  const test::Placed x(in.x, offset), delta(in.delta, offset / 2), weight(in.weight, 1), bias(in.bias, 2);
  test::Placed out(in.x.size(), -7.0f, offset), sum(in.x.size(), -7.0f, offset / 3), reciprocal(in.rows, -7.0f, 2);
  Stored normal(type, in.x.size(), offset);
  residual_layernorm_forward(x.data(), delta.data(), sum.data(), weight.data(), bias.data(), out.data(),
                             {normal.at(0), type, reciprocal.data()}, in.rows, in.C);
  return {out.copy(), normal.copy(), reciprocal.copy(), sum.copy()};
}

// Backward on the rows before `cut`, then on the others.
Gradients run_backward(const Inputs& in, const Forward& f, size_t offset = 0, DType type = DType::kF32,
                       size_t cut = 0) {
  const test::Placed weight(in.weight, offset / 2), dout(in.dout, offset / 3);
  test::Placed reciprocal(f.reciprocal, 2);
  test::Placed dx(in.before.dx, offset), dweight(in.before.dweight, 3), dbias(in.before.dbias, 5);
  Stored normal(type, f.normal, offset);
  const auto rows = [&](size_t first, size_t count) {
    layernorm_backward({.saved = {normal.at(first * in.C), type, reciprocal.data() + first},
                        .weight = weight.data(),
                        .dout = dout.data() + first * in.C,
                        .dx = dx.data() + first * in.C,
                        .dweight = dweight.data(),
                        .dbias = dbias.data()},
                       count, in.C);
  };
  rows(0, cut);
  rows(cut, in.rows - cut);
  return {dx.copy(), dweight.copy(), dbias.copy()};
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
  EXPECT_TRUE(test::same_bits(expected.dbias, found.dbias)) << "dbias";
}

std::vector<float> sum_of(const Inputs& in) {
  std::vector<float> sum = in.x;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += in.delta[i];
  return sum;
}

template <typename Body>  // body(inputs, offset, type)
void for_each_shape(Body body) {
  for (const size_t C : kSizes) {
    for (const size_t rows : {1, 2, 3, 5}) {
      const Inputs in = inputs_of(rows, C);
      for (const size_t offset : {0, 1, 9}) {
        for (const DType type : kTypes) {
          SCOPED_TRACE("rows " + std::to_string(rows) + ", C " + std::to_string(C) + ", offset " +
                       std::to_string(offset) + ", type " + std::to_string(static_cast<int>(type)));
          body(in, offset, type);
        }
      }
    }
  }
}

// With few features the variance may be near epsilon, and rounding of x - mean is magnified by up to 300. A normalised
// input below 8 (C = 512 could reach 22) is rounded by at most 8 / 2^9 in bf16, 8 / 2^12 in fp16; weights are below 4.
double tolerance_of(const Inputs& in, DType type) {
  const double rounding = type == DType::kF32 ? 0 : type == DType::kBF16 ? 32 * 0x1p-9 : 32 * 0x1p-12;
  return rounding + (in.C < 16 ? 1e-4 : 2e-6);
}

TEST(Layernorm, ForwardMatchesTwins) {
  test::for_each_target([&](const Target& target) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_forward(in, offset, type);
      if (target.fma) expect_same(twin_forward(type, in, in.x), f);
      EXPECT_TRUE(test::close(naive_forward(in, in.x), f.out, tolerance_of(in, type)));
    });
  });
}

TEST(Layernorm, ResidualForwardMatchesTwins) {
  test::for_each_target([&](const Target& target) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_residual(in, offset, type);
      EXPECT_TRUE(test::same_bits(sum_of(in), f.sum));
      if (target.fma) expect_same(twin_forward(type, in, sum_of(in)), f);
      EXPECT_TRUE(test::close(naive_forward(in, sum_of(in)), f.out, tolerance_of(in, type)));
    });
  });
}

TEST(Layernorm, ApplyReproducesForward) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_residual(in, offset, type);
      const test::Placed weight(in.weight, 1), bias(in.bias, offset);
      test::Placed out(in.x.size(), -7.0f, offset / 2);
      Stored normal(type, f.normal, offset);
      layernorm_apply(normal.at(0), type, weight.data(), bias.data(), out.data(), in.rows, in.C);
      EXPECT_TRUE(test::same_bits(f.out, out.span()));
    });
  });
}

TEST(Layernorm, OutputIsTheSameWithoutSavedValues) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      test::Placed out(in.x.size(), -7.0f, offset), sum(in.x, offset);
      const LayernormSaved nothing{nullptr, type, nullptr};
      layernorm_forward(in.x.data(), in.weight.data(), in.bias.data(), out.data(), nothing, in.rows, in.C);
      EXPECT_TRUE(test::same_bits(run_forward(in, offset, type).out, out.span()));
      residual_layernorm_forward(sum.data(), in.delta.data(), sum.data(), in.weight.data(), in.bias.data(), out.data(),
                                 nothing, in.rows, in.C);
      EXPECT_TRUE(test::same_bits(run_residual(in, offset, type).out, out.span()));
    });
  });
}

TEST(Layernorm, BackwardMatchesTwin) {
  test::for_each_target([&](const Target& target) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      const Forward f = run_forward(in, 0, type);
      const Gradients expected = twin_backward(in, f), found = run_backward(in, f, offset, type);
      if (target.fma) return expect_same(expected, found);
      const double tolerance = in.C < 16 ? 1e-3 : 1e-5;
      EXPECT_TRUE(test::close(expected.dx, found.dx, tolerance));
      EXPECT_TRUE(test::close(expected.dweight, found.dweight, tolerance));
      EXPECT_TRUE(test::close(expected.dbias, found.dbias, tolerance));
    });
  });
}

TEST(Layernorm, BackwardMatchesFiniteDifferences) {
  for (const size_t C : {5, 16, 33, 130}) {
    const size_t rows = 3;
    Inputs in = inputs_of(rows, C);
    in.before = {std::vector<float>(rows * C, 0.0f), std::vector<float>(C, 0.0f), std::vector<float>(C, 0.0f)};
    std::vector<double> x = doubles(in.x), weight = doubles(in.weight), bias = doubles(in.bias);
    const auto loss = [&] {
      const std::vector<double> out = naive_forward(C, x, weight, bias);
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * static_cast<double>(in.dout[i]);
      return sum;
    };
    const auto slopes = [&](std::vector<double>& values) {
      std::vector<double> result;
      for (double& value : values) result.push_back(test::derivative(loss, value));
      return result;
    };
    const std::vector<double> dx = slopes(x), dweight = slopes(weight), dbias = slopes(bias);
    test::for_each_target([&](const Target&) {
      const Gradients found = run_backward(in, run_forward(in));
      EXPECT_TRUE(test::close(dx, found.dx, 2e-5)) << "dx, C = " << C;
      EXPECT_TRUE(test::close(dweight, found.dweight, 2e-5)) << "dweight, C = " << C;
      EXPECT_TRUE(test::close(dbias, found.dbias, 2e-5)) << "dbias, C = " << C;
    });
  }
}

// The variance is taken around the mean: E[x^2] - E[x]^2 would have lost all its digits here.
TEST(Layernorm, LargeMeanDoesNotLosePrecision) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {100, 512}) {
      for (const float shift : {1e3f, -1e4f}) {
        const Inputs in = inputs_of(3, C, shift);
        const double tolerance = 6e-7 * std::abs(static_cast<double>(shift));  // ten roundings of the mean
        EXPECT_TRUE(test::close(naive_forward(in, in.x), run_forward(in).out, tolerance)) << C << ", shift " << shift;
      }
    }
  });
}

TEST(Layernorm, ConstantRowsGiveTheBias) {
  test::for_each_target([&](const Target&) {
    for (const size_t C : {1, 16, 48, 128, 512}) {
      Inputs in = inputs_of(2, C);
      in.x.assign(2 * C, 3.0f);
      const Forward f = run_forward(in);
      for (size_t i = 0; i < 2 * C; ++i) EXPECT_EQ(f.out[i], in.bias[i % C]);
      for (size_t i = 0; i < 2 * C; ++i) EXPECT_EQ(f.normal[i], 0.0f);
      EXPECT_FLOAT_EQ(f.reciprocal[1], 1.0f / std::sqrt(1e-5f));
    }
  });
}

TEST(Layernorm, TinyAndHugeRows) {
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

TEST(Layernorm, NanAndInfinityAffectOnlyTheirRow) {
  test::for_each_target([&](const Target&) {
    for (const DType type : kTypes) {
      for (const size_t C : {20, 133}) {
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
          Inputs in = inputs_of(6, C);
          const Forward good = run_forward(in, 0, type);
          in.x[2 * C + C - 1] = bad;
          const Forward f = run_forward(in, 0, type);
          for (size_t c = 0; c < C; ++c) EXPECT_TRUE(std::isnan(f.out[2 * C + c])) << c;
          for (size_t c = 0; c < C; ++c) EXPECT_TRUE(std::isnan(f.normal[2 * C + c])) << c;
          for (const size_t row : {0, 1, 3, 4, 5}) {
            EXPECT_TRUE(test::same_bits(std::span(good.out).subspan(row * C, C), std::span(f.out).subspan(row * C, C)));
          }
        }
      }
    }
  });
}

TEST(Layernorm, InPlaceGivesTheSame) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](const Inputs& in, size_t offset, DType type) {
      test::Placed values(in.x, offset);
      std::vector<float> reciprocal(in.rows), out(in.x.size());
      Stored normal(type, in.x.size(), 0);
      const LayernormSaved saved{normal.at(0), type, reciprocal.data()};
      layernorm_forward(values.data(), in.weight.data(), in.bias.data(), values.data(), saved, in.rows, in.C);
      expect_same(run_forward(in, 0, type), {values.copy(), normal.copy(), reciprocal, in.x});

      test::Placed sum(in.x, offset);
      residual_layernorm_forward(sum.data(), in.delta.data(), sum.data(), in.weight.data(), in.bias.data(), out.data(),
                                 saved, in.rows, in.C);
      expect_same(run_residual(in, 0, type), {out, normal.copy(), reciprocal, sum.copy()});
    });
  });
}

TEST(Layernorm, BackwardOnTopOfDout) {
  test::for_each_target([&](const Target&) {
    for_each_shape([&](Inputs in, size_t offset, DType type) {
      Forward f = run_forward(in, 0, type);
      in.before.dx = in.dout;
      Gradients found = in.before;
      test::Placed dx(in.dout, offset);
      Stored normal(type, f.normal, 0);
      layernorm_backward({.saved = {normal.at(0), type, f.reciprocal.data()},
                          .weight = in.weight.data(),
                          .dout = dx.data(),
                          .dx = dx.data(),
                          .dweight = found.dweight.data(),
                          .dbias = found.dbias.data()},
                         in.rows, in.C);
      found.dx = dx.copy();
      expect_same(run_backward(in, f, 0, type), found);
    });
  });
}

TEST(Layernorm, SplittingRowsIsBitIdentical) {
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

TEST(Layernorm, NoRowsTouchNothing) {
  test::for_each_target([&](const Target&) {
    for (const DType type : kTypes) {
      const LayernormSaved saved{nullptr, type, nullptr};
      layernorm_forward(nullptr, nullptr, nullptr, nullptr, saved, 0, 16);
      residual_layernorm_forward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, saved, 0, 512);
      layernorm_apply(nullptr, type, nullptr, nullptr, nullptr, 0, 16);
      layernorm_backward({saved, nullptr, nullptr, nullptr, nullptr, nullptr}, 0, 16);
    }
  });
}

}  // namespace
}  // namespace quern::kernels
