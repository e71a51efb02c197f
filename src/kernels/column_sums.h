// The gradient of a bias: sums over rows.
#pragma once

#include <cstddef>

namespace quern::kernels {

// sums (C) += x (rows, C), row after row in order: sums[j] = (... (sums[j] + x[0, j]) + x[1, j]) ... So cutting the
// rows into calls in order gives the same bits. Must not overlap. Any alignment, any thread, no allocation.
void column_sums(const float* x, size_t rows, size_t C, float* sums) noexcept;

}  // namespace quern::kernels
