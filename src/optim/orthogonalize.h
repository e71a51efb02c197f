// Replaces the singular values of a matrix by numbers near 1: the Newton-Schulz iteration of Muon.
#pragma once

#include <cstddef>
#include <span>

#include "core/aligned_buffer.h"

namespace quern {

// A part of a row-major matrix with `stride` floats per row.
struct MatrixView {
  float* data;
  size_t rows, columns, stride;
};

// X / |X| is close to a matrix whose singular values are below 1. Five steps of the odd polynomial
//   X <- a X + b (X X^T) X + c (X X^T)^2 X,  (a, b, c) = (3.4445, -4.7750, 2.0315),
// move all that are above about 0.001 to between 0.68 and 1.13 and leave the singular vectors unchanged. That is
// coarser than an exact polar decomposition and trains as well.
//
// With S = min(rows, columns), L = max(rows, columns), a step costs 2 S^2 L + 2 S^3 multiply-adds, of which the two
// products with a symmetric result compute only one half: 1.5 S^2 L + 0.5 S^3 for S well above 96.
//
// The bits are those of GEMM, one chain per element, so they do not depend on threads or on the vector width.
class Orthogonalizer {
 public:
  // What the largest of several matrices needs.
  struct Size {
    size_t side = 0;    // the smaller one
    size_t packed = 0;  // floats

    void include(size_t rows, size_t columns);
    size_t bytes() const;
  };
  explicit Orthogonalizer(const Size& size);

  // Writes the result to `out`, with the shape and stride of x, and overwrites x. Does not allocate.
  void run(const MatrixView& x, float* out);

 private:
  void gram(const MatrixView& x);
  void polynomial(size_t side);

  AlignedBuffer<float> a_, s_, b_;         // (side, side): X X^T; c A + b I; the polynomial
  AlignedBuffer<float> packed_, scratch_;  // of GEMM
};

// Floating-point operations of orthogonalizing one matrix, for profiles: products with symmetric results count half.
double orthogonalize_flops(size_t rows, size_t columns);

}  // namespace quern
