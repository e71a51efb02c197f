// AdamW, fused with clipping: one pass over memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

struct AdamW {
  float rate = 3e-4f;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;
  float gradient_scale = 1.0f;  // multiplies the gradient first: the clip factor
  int64_t step = 1;             // number of updates including this one, for the bias corrections
};

// For each i, with g = gradient[i] * gradient_scale:
//   m = beta1 * m + (1 - beta1) * g,  v = beta2 * v + (1 - beta2) * g^2,
//   p -= rate * (m_hat / (sqrt(v_hat) + epsilon) + weight_decay * p),  m_hat = m / (1 - beta1^step), v_hat likewise.
// In this order, with fused multiply-adds, so that all targets with FMA are bit-identical (c1 = 1 / (1 - beta1^step)
// and c2 likewise; 1 - beta, c1 and c2 are computed in double precision and rounded):
//   m = fma(beta1, m, (1 - beta1) * g),  v = fma(beta2, v, ((1 - beta2) * g) * g),
//   p = fma(-rate, fma(weight_decay, p, (m * c1) / (sqrt(v * c2) + epsilon)), p).
// NaN and infinity propagate as in IEEE 754: the caller checks the gradient first (all_finite). The gradient is
// only read. Arrays must not overlap. Any alignment, any thread, no allocation; elements are independent, so any split
// gives the same bits.
void adamw(const AdamW& options, float* p, const float* gradient, float* m, float* v, size_t n) noexcept;

}  // namespace quern::kernels
