#include "optim/orthogonalize.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/gemm.h"
#include "kernels/vector_ops.h"

namespace quern {
namespace {

using kernels::Gemm;
using kernels::Layout;

constexpr size_t kSteps = 5;
static_assert(kSteps % 2 == 1);  // x and out alternate, and the last result is in out
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
constexpr double kMinNorm = 1e-7;  // a smaller norm counts as this, so that a zero matrix stays zero

// Rows of a symmetric result that are computed together, up to the diagonal. The waste, half a block per row, is 12 %
// for 384 rows; smaller blocks make GEMM slower.
constexpr size_t kBlock = 96;
static_assert(kBlock % kernels::kPanelColumns == 0);

// The lower triangle of the symmetric product, then its mirror image. With packed_b.
void symmetric(const Gemm& product, std::span<float> scratch) {
  const size_t n = product.M;
  for (size_t row = 0; row < n; row += kBlock) {
    const size_t end = std::min(row + kBlock, n);
    kernels::gemm(kernels::block_of(product, {row, end}, {0, end}), scratch);
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) product.c[i * product.c_stride + j] = product.c[j * product.c_stride + i];
  }
}

void add_to_diagonal(float* square, size_t n, float value) {
  for (size_t i = 0; i < n; ++i) square[i * n + i] += value;
}

// X /= max(|X|, kMinNorm), with the norm of Frobenius.
void normalize(const MatrixView& x) {
  double squares = 0;
  for (size_t row = 0; row < x.rows; ++row) squares += kernels::squared_norm(x.data + row * x.stride, x.columns);
  const auto factor = static_cast<float>(1 / std::max(std::sqrt(squares), kMinNorm));
  for (size_t row = 0; row < x.rows; ++row) kernels::scale(x.data + row * x.stride, factor, x.columns);
}

size_t smaller_side(const MatrixView& x) { return std::min(x.rows, x.columns); }

}  // namespace

void Orthogonalizer::Size::include(size_t rows, size_t columns) {
  const size_t smaller = std::min(rows, columns);
  side = std::max(side, smaller);
  packed = std::max(packed, kernels::packed_size(std::max(rows, columns), smaller));
}

size_t Orthogonalizer::Size::bytes() const {
  return (3 * side * side + packed + kernels::kGemmScratch) * sizeof(float);
}

Orthogonalizer::Orthogonalizer(const Size& size)
    : a_(size.side * size.side),
      s_(size.side * size.side),
      b_(size.side * size.side),
      packed_(size.packed),
      scratch_(kernels::kGemmScratch) {}

// A = X X^T, or X^T X if that is smaller.
void Orthogonalizer::gram(const MatrixView& x) {
  const size_t n = smaller_side(x);
  const bool tall = x.rows > x.columns;
  const Gemm product{.layout = tall ? Layout::kTN : Layout::kNT,
                     .M = n,
                     .N = n,
                     .K = tall ? x.rows : x.columns,
                     .a = {x.data, x.stride},
                     .b = {x.data, x.stride},
                     .packed_b = packed_.data(),
                     .c = a_.data(),
                     .c_stride = n};
  kernels::pack_b(product.layout, product.b, product.K, product.N, packed_.data());
  symmetric(product, scratch_.span());
}

// B = a I + (b I + c A) A.
void Orthogonalizer::polynomial(size_t n) {
  std::copy_n(a_.data(), n * n, s_.data());
  kernels::scale(s_.data(), kC, n * n);
  add_to_diagonal(s_.data(), n, kB);
  kernels::pack_b(Layout::kNN, {a_.data(), n}, n, n, packed_.data());
  symmetric({.M = n,
             .N = n,
             .K = n,
             .a = {s_.data(), n},
             .b = {a_.data(), n},
             .packed_b = packed_.data(),
             .c = b_.data(),
             .c_stride = n},
            scratch_.span());
  add_to_diagonal(b_.data(), n, kA);
}

void Orthogonalizer::run(const MatrixView& x, float* out) {
  const size_t n = smaller_side(x);
  const bool tall = x.rows > x.columns;
  assert(n * n <= a_.size());
  normalize(x);
  MatrixView from = x, to = x;
  to.data = out;
  for (size_t step = 0; step < kSteps; ++step) {
    gram(from);
    polynomial(n);
    const kernels::Operand matrix{from.data, from.stride}, square{b_.data(), n};
    kernels::gemm({.M = x.rows,
                   .N = x.columns,
                   .K = n,
                   .a = tall ? matrix : square,
                   .b = tall ? square : matrix,
                   .c = to.data,
                   .c_stride = to.stride},
                  scratch_.span());
    std::swap(from.data, to.data);
  }
}

double orthogonalize_flops(size_t rows, size_t columns) {
  const double s = static_cast<double>(std::min(rows, columns)), l = static_cast<double>(std::max(rows, columns));
  return kSteps * (3 * s * s * l + s * s * s);
}

}  // namespace quern
