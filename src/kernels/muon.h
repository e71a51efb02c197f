// The elementwise parts of Muon: momentum before the orthogonalization, and the update after it.
#pragma once

#include <cstddef>

namespace quern::kernels {

struct Momentum {
  float momentum = 0.95f;
  float gradient_scale = 1.0f;  // multiplies the gradient first: the clip factor
};

// For each i, with r = (1 - momentum) * (gradient[i] * gradient_scale), where 1 - momentum is rounded once:
//   m = fma(momentum, m, r),  direction = fma(momentum, m, r)  (Nesterov: the momentum that one more step would have).
// Arrays must not overlap. Any alignment, any thread, no allocation; elements are independent, so any split gives the
// same bits on every target with FMA.
void momentum(const Momentum& options, float* m, const float* gradient, float* direction, size_t n) noexcept;

struct MatrixUpdate {
  float rate = 0.02f;
  float scale = 1.0f;  // of the direction
  float weight_decay = 0.1f;
};

// p = fma(-rate, fma(weight_decay, p, scale * direction), p) for each element. As above in all other respects.
void apply_direction(const MatrixUpdate& options, float* p, const float* direction, size_t n) noexcept;

}  // namespace quern::kernels
