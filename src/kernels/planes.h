// Boards as games write them, plane by plane, to rows of a matrix.
#pragma once

#include <cstddef>

namespace quern::kernels {

// rows (boards, squares, planes) = planes (boards, planes, squares), transposed. Must not overlap. Any alignment, any
// thread, no allocation.
void planes_to_rows(const float* planes, size_t boards, size_t plane_count, size_t squares, float* rows) noexcept;

}  // namespace quern::kernels
