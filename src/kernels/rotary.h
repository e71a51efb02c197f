// Rotary position embedding: pairs of elements of a head are rotated by angles that grow with the position.
#pragma once

#include <cstddef>

namespace quern::kernels {

struct RotaryShape {
  size_t heads;     // consecutive heads in a row
  size_t head_dim;  // d, even, at least 2
  size_t stride;    // floats between rows, at least heads * head_dim
};

// x (rows, heads, d) in place: element j < d/2 of a head is paired with j + d/2, as in Hugging Face's rotate_half:
//   y[j] = x[j] c[j] - x[j + d/2] s[j]     y[j + d/2] = x[j + d/2] c[j] + x[j] s[j]
// table (positions, d) holds, for each position, d/2 cosines c and then d/2 sines s; row r uses position first + r.
// In fp32: fma(x[j], c, -(x[j + d/2] * s)) and fma(x[j + d/2], c, x[j] * s). Each element of x depends on its own pair
// only. Any alignment, any thread, no allocation; x and the table must not overlap.
void rotary_forward(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) noexcept;

// The inverse rotation, which is the gradient: forward with s replaced by -s. In place.
void rotary_backward(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) noexcept;

}  // namespace quern::kernels
