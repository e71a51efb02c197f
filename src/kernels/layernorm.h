// LayerNorm over the last dimension, forward and backward, with or without the residual add before it.
#pragma once

#include <cstddef>

namespace quern::kernels {

inline constexpr float kLayernormEpsilon = 1e-5f;

// The per-row results that backward needs.
struct LayernormStats {
  float* mean;        // (rows)
  float* reciprocal;  // (rows): 1 / sqrt(variance + epsilon)
};

// out (rows, C) = (x - mean) * reciprocal * weight + bias, row by row: the mean first, then the variance around it,
// each summed in 16 virtual lanes. Overwrites out and stats. `out` may be `x`. Rows are independent. Any alignment, any
// thread, no allocation. C >= 1.
void layernorm_forward(const float* x, const float* weight, const float* bias, float* out, LayernormStats stats,
                       size_t rows, size_t C) noexcept;

// The same on x + delta; `sum` (rows, C) receives x + delta and may be `x`. Other arrays must not overlap.
void residual_layernorm_forward(const float* x, const float* delta, float* sum, const float* weight, const float* bias,
                                float* out, LayernormStats stats, size_t rows, size_t C) noexcept;

struct LayernormBackward {
  const float* x;       // (rows, C), the input of the normalisation
  const float* weight;  // (C)
  const float* dout;    // (rows, C)
  LayernormStats stats;
  float* dx;       // (rows, C) += gradient with respect to x, on top of the residual gradient that is there
  float* dweight;  // (C) += , rows added in order
  float* dbias;    // (C) +=
};

// `dx` may be `dout` only if the caller wants dout + gradient; other arrays must not overlap. dweight and dbias are
// sums over rows in increasing order, so cutting the rows between threads needs a fixed order; cutting calls by rows in
// order gives the same bits as one call.
void layernorm_backward(const LayernormBackward& args, size_t rows, size_t C) noexcept;

}  // namespace quern::kernels
