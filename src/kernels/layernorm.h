// LayerNorm over the last dimension, forward and backward, with or without a preceding residual add.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

inline constexpr float kLayernormEpsilon = 1e-5f;

// What forward saves for backward: the normalized input, in any format, and one float per row. If no backward follows,
// `normal` and `reciprocal` may both be null; `type` still rounds, so that out is bit-identical to training.
struct LayernormSaved {
  void* normal;       // (rows, C) of `type`: (x - mean) * reciprocal, rounded to nearest even as in convert.h
  DType type;         // of `normal`
  float* reciprocal;  // (rows): 1 / sqrt(variance + epsilon)
};

// out (rows, C) = normal * weight + bias, computed from the saved (rounded) normal, row by row: first the mean, then
// the variance around it, each summed in 16 virtual lanes. Overwrites `out` and the arrays in `saved`. `out` may alias
// `x`; other arrays must not overlap. Rows are independent. Any alignment, any thread, no allocation. C >= 1.
void layernorm_forward(const float* x, const float* weight, const float* bias, float* out, LayernormSaved saved,
                       size_t rows, size_t C, float epsilon = kLayernormEpsilon) noexcept;

// The same on x + delta; `sum` (rows, C) receives x + delta and may alias `x`. Other arrays must not overlap.
void residual_layernorm_forward(const float* x, const float* delta, float* sum, const float* weight, const float* bias,
                                float* out, LayernormSaved saved, size_t rows, size_t C,
                                float epsilon = kLayernormEpsilon) noexcept;

// Recomputes forward's out (rows, C), bit-identical, from the normalized input of `type` that it saved. Rows are
// independent.
void layernorm_apply(const void* normal, DType type, const float* weight, const float* bias, float* out, size_t rows,
                     size_t C) noexcept;

struct LayernormBackward {
  LayernormSaved saved;  // as written by forward
  const float* weight;   // (C)
  const float* dout;     // (rows, C)
  float* dx;             // (rows, C) += gradient with respect to x, on top of the residual gradient already there
  float* dweight;        // (C) +=, rows added in order; null: not computed
  float* dbias;          // (C) +=; null: not computed
};

// With n the saved normal, r the saved reciprocal and g = dout * weight:
//   dx += r g + slope n + offset,  offset = -r mean(g),  slope = -r mean(g n);  dweight += dout n;  dbias += dout.
// In fp32: both sums in 16 virtual lanes, divided by C, times r; then dx + fma(r, g, fma(slope, n, offset)), fma(dout,
// n, dweight), dbias + dout.
// `dx` may alias `dout` only if the caller wants dout + gradient; other arrays must not overlap. dweight and dbias are
// sums over rows in increasing order, so dividing rows between threads requires a fixed order; splitting the rows into
// several calls in order gives the same bits as one call.
void layernorm_backward(const LayernormBackward& args, size_t rows, size_t C) noexcept;

}  // namespace quern::kernels
