// RMS norm over the last dimension, forward and backward, with or without a weight and a preceding residual add.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

// What forward saves for backward: the normalized input, in any format, and one float per row. Either pointer may be
// null if it is not needed; `type` still rounds, so that out is bit-identical to training.
struct RmsnormSaved {
  void* normal;       // (rows, C) of `type`: x * reciprocal, rounded to nearest even as in convert.h
  DType type;         // of `normal`
  float* reciprocal;  // (rows): 1 / sqrt(mean(x^2) + epsilon)
};

struct RmsnormOptions {
  float epsilon = 1e-5f;
  const float* weight = nullptr;  // (C), or null for none
};

// out (rows, C) = normal * weight, or normal without a weight, computed from the saved (rounded) normal. The squares
// are summed in 16 virtual lanes. Overwrites `out` and the arrays in `saved`. `out` may alias `x`; other arrays must
// not overlap. Rows are independent. Any alignment, any thread, no allocation. C >= 1.
void rmsnorm_forward(const float* x, float* out, RmsnormSaved saved, size_t rows, size_t C,
                     const RmsnormOptions& options) noexcept;

// The same on x + delta; `sum` (rows, C) receives x + delta and may alias `x`. Other arrays must not overlap.
void residual_rmsnorm_forward(const float* x, const float* delta, float* sum, float* out, RmsnormSaved saved,
                              size_t rows, size_t C, const RmsnormOptions& options) noexcept;

// Recomputes forward's out (rows, C), bit-identical, from the normalized input of `type` that it saved. `weight` may be
// null, as in forward. Rows are independent.
void rmsnorm_apply(const void* normal, DType type, const float* weight, float* out, size_t rows, size_t C) noexcept;

struct RmsnormBackward {
  RmsnormSaved saved;             // as written by forward; both arrays are needed
  const float* weight = nullptr;  // (C), or null, as in forward
  const float* dout;              // (rows, C)
  float* dx;                      // (rows, C), gradient with respect to x
  float* dweight = nullptr;       // (C) +=, rows added in order; null: not computed
  bool add = true;                // dx += gradient; false: dx = gradient
};

// With n the saved normal, r the saved reciprocal and g = dout * weight, or dout without a weight:
//   gradient = r (g + slope n),  slope = -mean(g n);  dweight += dout n.
// In fp32: the sum in 16 virtual lanes, divided by C; then t = fma(slope, n, g), and dx = fma(r, t, dx) with `add`, r *
// t without; fma(dout, n, dweight). Without `add`, `dx` may alias `dout`; with it, only if the caller wants dout +
// gradient. Other arrays must not overlap. dweight is a sum over rows in increasing order, so dividing rows between
// threads requires a fixed order; splitting the rows into several calls in order gives the same bits as one call.
void rmsnorm_backward(const RmsnormBackward& args, size_t rows, size_t C) noexcept;

}  // namespace quern::kernels
