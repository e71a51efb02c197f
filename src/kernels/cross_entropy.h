// Softmax cross entropy over rows of logits, and its gradient in place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

// A row with this target has loss 0 and gradient 0: padding, or text to exclude from training.
inline constexpr int32_t kIgnoreTarget = -1;

// losses[r] = log(sum_j e^logits[r, j]) - logits[r, target[r]]. If `gradient` is true, the row is then overwritten with
// its gradient times `scale`: (softmax(logits) - onehot(target)) * scale.
// With cap > 0, the logits are those that soft_cap() gives, y: the loss is that of y, and the gradient is with respect
// to the logits before it, (softmax(y) - onehot(target)) * scale * (1 - (y / cap)^2). cap = 0 means no cap. Targets
// must be below V or kIgnoreTarget (checked by the caller). A NaN in a row makes its loss NaN. Rows are independent;
// any alignment, any thread, no allocation. V >= 1.
void cross_entropy(float* logits, size_t stride, const int32_t* targets, size_t rows, size_t V, float scale,
                   float* losses, bool gradient, float cap = 0.0f) noexcept;

// logits[i] = cap * tanh(logits[i] / cap), in place; unchanged if cap = 0. The relative error is below 1e-6, also close
// to 0; infinities become +-cap, NaN stays NaN. Any alignment, any thread, no allocation. 0 <= cap < infinity.
void soft_cap(float* logits, size_t n, float cap) noexcept;

}  // namespace quern::kernels
