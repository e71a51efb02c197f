// Statistics of an array (gradients, activations) in one pass. Any alignment, any thread, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

struct TensorStats {
  double sum = 0;
  double squares = 0;  // bit-identical to squared_norm()
  float largest = 0;   // maximum magnitude; infinite if an element is, NaN if an element is
  uint64_t zeros = 0;  // of either sign
};

// Sums as in squared_norm(): blocks of 4,096 elements in 16 virtual lanes of fp32 (fused multiply-adds for the
// squares), folded, and the blocks added in order in double precision.
TensorStats tensor_stats(const float* x, size_t n) noexcept;

// The sum of (a[i] - b[i])^2, each difference rounded to fp32, in the same order.
double squared_distance(const float* a, const float* b, size_t n) noexcept;

}  // namespace quern::kernels
