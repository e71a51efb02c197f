// GELU in its tanh form, as GPT-2 uses it.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

// gelu(x) = x / 2 * (1 + tanh(u)) = x / (1 + e^(-2u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3).
// out[i] = gelu(x[i]). `out` may be `x`. Any alignment, any thread, no allocation.
void gelu_forward(const float* x, float* out, size_t n) noexcept;

// dx[i] = dout[i] * gelu'(x[i]). `dx` may be `dout`.
void gelu_backward(const float* x, const float* dout, float* dx, size_t n) noexcept;

// Both at once, from one exponential, the same bits: out[i] = gelu(x), gradient[i] *= gelu'(x), x = input[i] of `type`.
// Arrays must not overlap.
void gelu_forward_backward(const void* input, DType type, float* gradient, float* out, size_t n) noexcept;

}  // namespace quern::kernels
