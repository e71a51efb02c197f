// The row operations of attention with a full T x T matrix, vectorised: the reference of the attention benchmark.
#pragma once

#include <cstddef>

namespace quern::bench {

// p (T, T), in place: from scores to causal probabilities: row i = softmax(scale * row i) over its first i + 1 columns,
// 0 after them. T must be a multiple of 16.
void full_softmax(float* p, size_t T, float scale);

// dp (T, T), in place: from dP to dS = scale * p * (dP - sum of p * dP over the row), 0 above the diagonal.
void full_softmax_backward(const float* p, float* dp, size_t T, float scale);

}  // namespace quern::bench
