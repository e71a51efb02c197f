// Softmax cross entropy over rows of logits, and its gradient in place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

// A row with this target has loss 0 and gradient 0: padding, or text to exclude from training.
inline constexpr int32_t kIgnoreTarget = -1;

// losses[r] = log(sum_j e^logits[r, j]) - logits[r, target[r]]. If `gradient` is true, the row is then overwritten with
// its gradient times `scale`: (softmax(logits) - onehot(target)) * scale.
// Targets must be below V or kIgnoreTarget (checked by the caller). A NaN in a row makes its loss NaN. Rows are
// independent; any alignment, any thread, no allocation. V >= 1.
void cross_entropy(float* logits, size_t stride, const int32_t* targets, size_t rows, size_t V, float scale,
                   float* losses, bool gradient) noexcept;

}  // namespace quern::kernels
