// Operations on long arrays, mainly gradients. Any alignment, any thread, no allocation.
#pragma once

#include <cstddef>

namespace quern::kernels {

// sum[i] += x[i]. `sum` and `x` must not overlap.
void accumulate(float* sum, const float* x, size_t n) noexcept;

// x[i] *= factor.
void scale(float* x, float factor, size_t n) noexcept;

// The sum of x[i]^2. Blocks of 4,096 elements are summed in 16 virtual lanes of fp32 fused multiply-adds and folded;
// the blocks are added in order in double precision. The norm of a segment is therefore bit-identical on every target
// with FMA.
double squared_norm(const float* x, size_t n) noexcept;

// Whether no element is NaN or infinite.
bool all_finite(const float* x, size_t n) noexcept;

}  // namespace quern::kernels
