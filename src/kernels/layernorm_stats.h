// LayerNorm whose backward reads the input again and takes the mean and the reciprocal of each row from forward.
#pragma once

#include <cstddef>

namespace quern::kernels {

// The per-row results that backward needs.
struct LayernormStats {
  float* mean;        // (rows)
  float* reciprocal;  // (rows): 1 / sqrt(variance + epsilon)
};

// out (rows, C) = (x - mean) * reciprocal * weight + bias. Overwrites out and stats. `out` may be `x`.
void layernorm_forward(const float* x, const float* weight, const float* bias, float* out, LayernormStats stats,
                       size_t rows, size_t C) noexcept;

// The same on x + delta; `sum` (rows, C) receives x + delta and may be `x`. Other arrays must not overlap.
void residual_layernorm_forward(const float* x, const float* delta, float* sum, const float* weight, const float* bias,
                                float* out, LayernormStats stats, size_t rows, size_t C) noexcept;

struct LayernormStatsBackward {
  const float* x;       // (rows, C), the input of the normalisation
  const float* weight;  // (C)
  const float* dout;    // (rows, C)
  LayernormStats stats;
  float* dx;       // (rows, C) += gradient with respect to x, on top of the residual gradient that is there
  float* dweight;  // (C) += , rows added in order
  float* dbias;    // (C) +=
};

void layernorm_backward(const LayernormStatsBackward& args, size_t rows, size_t C) noexcept;

}  // namespace quern::kernels
