// GELU with the tanh approximation, as in GPT-2.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

// gelu(x) = x / 2 * (1 + tanh(u)) = x / (1 + e^(-2u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3).
// out[i] = gelu(x[i]). `out` may alias `x`. Any alignment, any thread, no allocation.
void gelu_forward(const float* x, float* out, size_t n) noexcept;

// dx[i] = dout[i] * gelu'(x[i]). `dx` may alias `dout`.
void gelu_backward(const float* x, const float* dout, float* dx, size_t n) noexcept;

// Both from one exponential, bit-identical: out[i] = gelu(x), gradient[i] *= gelu'(x), x = input[i] of `type`. Arrays
// must not overlap.
void gelu_forward_backward(const void* input, DType type, float* gradient, float* out, size_t n) noexcept;

}  // namespace quern::kernels
