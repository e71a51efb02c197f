// Squared ReLU: max(x, 0)^2.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

// out[i] = max(x[i], 0)^2; NaN stays NaN. `out` may alias `x`. Any alignment, any thread, no allocation.
void relu2_forward(const float* x, float* out, size_t n) noexcept;

// Both directions: out[i] = max(x, 0)^2, bit-identical to relu2_forward, gradient[i] *= 2 max(x, 0), x = input[i] of
// `type`. Arrays must not overlap.
void relu2_forward_backward(const void* input, DType type, float* gradient, float* out, size_t n) noexcept;

}  // namespace quern::kernels
