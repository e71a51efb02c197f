// Softmax cross entropy over rows of logits with a distribution as target, and its gradient in place.
#pragma once

#include <cstddef>

namespace quern::kernels {

// Rows of V logits z and targets t. An element with a target below 0 does not exist: its logit may have any value, has
// no share of the softmax, and gets the gradient 0.
struct SoftCrossEntropy {
  float* logits = nullptr;
  size_t logit_stride = 0;  // floats between rows of logits
  const float* targets = nullptr;
  size_t target_stride = 0;
  size_t rows = 0, V = 0;
  float* losses = nullptr;
  size_t loss_stride = 1;
  float scale = 1.0f;     // of the gradient
  bool gradient = false;  // if true, it overwrites the logits
};

// loss = sum over j of t_j (log(sum over k of e^z_k) - z_j), and its gradient times scale, (t softmax(z)_j - t_j) *
// scale, where t is the sum of the targets: 1 for a distribution, up to rounding, but the gradient is that of the loss
// for any t.
//
// The numerical contract (promise I6): with m the largest z, e_j = exp(z_j - m) and lanes the 16 virtual lanes of a row
// reduction, s = lanes of e_j, t = lanes of t_j and c = lanes of fused multiply-adds of t_j (z_j - m), the loss is t
// log(s) - c in double precision, rounded once, and the gradient fma(e_j, (scale * t) / s, -(scale * t_j)).
//
// A row without an element that exists has the loss NaN, as has one with a NaN among the elements that do (checked by
// the caller). Rows are independent; any alignment, any thread, no allocation. V >= 1.
void soft_cross_entropy(const SoftCrossEntropy& args) noexcept;

}  // namespace quern::kernels
