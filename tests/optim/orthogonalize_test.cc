#include "optim/orthogonalize.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "support/support.h"

namespace quern {
namespace {

using Doubles = std::vector<double>;

// C (M, N) = A (M, K) B (K, N).
Doubles product(const Doubles& a, const Doubles& b, size_t M, size_t N, size_t K) {
  Doubles c(M * N);
  for (size_t i = 0; i < M; ++i) {
    for (size_t k = 0; k < K; ++k) {
      for (size_t j = 0; j < N; ++j) c[i * N + j] += a[i * K + k] * b[k * N + j];
    }
  }
  return c;
}

Doubles transposed(const Doubles& x, size_t rows, size_t columns) {
  Doubles y(x.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  }
  return y;
}

// The iteration as published, always on the side of the rows, in double precision.
Doubles twin(Doubles x, size_t rows, size_t columns) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::max(std::sqrt(squares), 1e-7);
  for (int step = 0; step < 5; ++step) {
    const Doubles a = product(x, transposed(x, rows, columns), rows, rows, columns),
                  aa = product(a, a, rows, rows, rows);
    Doubles b(a.size());
    for (size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * aa[i];
    const Doubles bx = product(b, x, rows, columns, rows);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  return x;
}

struct Shape {
  size_t rows, columns;
};
const std::vector<Shape> kShapes = {{1, 1},   {1, 17},   {17, 1},   {5, 7},     {16, 16},  {48, 48},
                                    {97, 96}, {33, 100}, {100, 33}, {128, 384}, {200, 130}};

std::vector<float> orthogonalized(std::vector<float> x, const Shape& shape, size_t stride) {
  Orthogonalizer::Size size;
  size.include(shape.rows, shape.columns);
  std::vector<float> out(x.size());
  Orthogonalizer(size).run({x.data(), shape.rows, shape.columns, stride}, out.data());
  return out;
}

TEST(Orthogonalize, EqualsADoublePrecisionTwin) {
  test::for_each_target([](const kernels::Target&) {
    for (const Shape& shape : kShapes) {
      const std::vector<float> x = test::normal(shape.rows * shape.columns, 3, 0.01f);
      const Doubles expected = twin({x.begin(), x.end()}, shape.rows, shape.columns);
      const std::vector<float> found = orthogonalized(x, shape, shape.columns);
      double error = 0, norm = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        error += std::pow(static_cast<double>(found[i]) - expected[i], 2);
        norm += expected[i] * expected[i];
      }
      EXPECT_LT(std::sqrt(error / norm), 2e-5) << shape.rows << " x " << shape.columns;
    }
  });
}

// The bits of the first target with fused multiply-add.
TEST(Orthogonalize, SameOnEveryTargetWithFusedMultiplyAdd) {
  const Shape shape{100, 213};
  const std::vector<float> x = test::normal(shape.rows * shape.columns, 4);
  std::vector<float> first;
  test::for_each_target([&](const kernels::Target& target) {
    if (!target.fma) return;
    const std::vector<float> found = orthogonalized(x, shape, shape.columns);
    if (first.empty()) first = found;
    EXPECT_TRUE(test::same_bits(first, found));
  });
}

// A part of a wider matrix has the bits that it has alone, and nothing outside it changes.
TEST(Orthogonalize, PartOfAWiderMatrix) {
  const Shape shape{40, 30};
  const size_t stride = 77, before = 9;
  const std::vector<float> x = test::normal(shape.rows * shape.columns, 5);
  std::vector<float> wide(shape.rows * stride, 7.0f);
  for (size_t i = 0; i < shape.rows; ++i) {
    std::copy_n(&x[i * shape.columns], shape.columns, &wide[i * stride + before]);
  }
  Orthogonalizer::Size size;
  size.include(shape.rows, shape.columns);
  std::vector<float> out(wide.size(), 7.0f);
  Orthogonalizer(size).run({&wide[before], shape.rows, shape.columns, stride}, &out[before]);
  const std::vector<float> expected = orthogonalized(x, shape, shape.columns);
  for (size_t i = 0; i < shape.rows; ++i) {
    for (size_t j = 0; j < stride; ++j) {
      const bool inside = j >= before && j < before + shape.columns;
      ASSERT_EQ(out[i * stride + j], inside ? expected[i * shape.columns + j - before] : 7.0f);
      if (!inside) {
        ASSERT_EQ(wide[i * stride + j], 7.0f);
      }
    }
  }
}

// The singular values of a random square matrix reach down to about 1 / (2 side) of the largest: all end near 1.
TEST(Orthogonalize, MakesRowsNearlyOrthonormal) {
  const Shape shape{64, 256};
  const std::vector<float> x = orthogonalized(test::normal(shape.rows * shape.columns, 6), shape, shape.columns);
  for (size_t i = 0; i < shape.rows; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (size_t k = 0; k < shape.columns; ++k) {
        dot += static_cast<double>(x[i * shape.columns + k]) * static_cast<double>(x[j * shape.columns + k]);
      }
      if (i == j) {
        EXPECT_GT(dot, 0.4);
        EXPECT_LT(dot, 1.4);
      } else {
        EXPECT_LT(std::abs(dot), 0.25);
      }
    }
  }
}

TEST(Orthogonalize, AZeroMatrixStaysZero) {
  for (const float value : orthogonalized(std::vector<float>(12 * 20), {12, 20}, 20)) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace quern
