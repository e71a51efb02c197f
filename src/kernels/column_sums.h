// The gradient of a bias: sums over rows.
#pragma once

#include <cstddef>

namespace quern::kernels {

// sums (C) += x (rows, C), whose rows are `stride` floats apart, in row order: sums[j] = (... (sums[j] + x[0, j]) +
// x[1, j]) ... Splitting the rows into several calls in order therefore gives the same bits. Must not overlap. Any
// alignment, any thread, no allocation.
void column_sums(const float* x, size_t stride, size_t rows, size_t C, float* sums) noexcept;

}  // namespace quern::kernels
