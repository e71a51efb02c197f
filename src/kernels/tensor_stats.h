// What can be said about many numbers in one pass over them: gradients, activations. Any alignment, any thread, no
// allocation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

struct TensorStats {
  double sum = 0;
  double squares = 0;  // the bits of squared_norm()
  float largest = 0;   // magnitude; infinite when one is, NaN when one is
  uint64_t zeros = 0;  // of either sign
};

// Sums as squared_norm() has them: blocks of 4,096 elements in 16 virtual lanes of fp32 (fused multiply-adds for the
// squares), folded, and the blocks added in order in double precision.
TensorStats tensor_stats(const float* x, size_t n) noexcept;

// The sum of (a[i] - b[i])^2, each difference rounded to fp32, in the same order.
double squared_distance(const float* a, const float* b, size_t n) noexcept;

}  // namespace quern::kernels
