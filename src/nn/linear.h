// y = x W + b and its gradients, through GEMM.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/gemm.h"

namespace quern {

// A linear layer's weights: W (in, out), b (out). Packed copies, where they are not null, are used instead of W.
struct Linear {
  const float* weight = nullptr;
  const float* bias = nullptr;
  size_t in = 0, out = 0;
  const float* packed_forward = nullptr;   // pack_b(kNN, W, in, out)
  const float* packed_backward = nullptr;  // pack_b(kNT, W, out, in)
};

// y (rows, out) = x (rows, in) W + b.
void linear_forward(const Linear& linear, const float* x, float* y, size_t rows, std::span<float> scratch);

// y = gelu(x W + b); `input` (rows, out) receives x W + b, for backward.
void linear_gelu_forward(const Linear& linear, const float* x, float* input, float* y, size_t rows,
                         std::span<float> scratch);

// The gradients of the weights, added in the order of the rows.
struct LinearGradient {
  float* weight;  // (in, out) +=
  float* bias;    // (out) +=
};

// dx (rows, in) = dy W^T (overwritten); gradient += x^T dy and the column sums of dy.
void linear_backward(const Linear& linear, const float* x, const float* dy, float* dx, const LinearGradient& gradient,
                     size_t rows, std::span<float> scratch);

}  // namespace quern
