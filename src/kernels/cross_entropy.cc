#include "kernels/cross_entropy.h"

#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// f(x, first element, count) for each 16 elements of the row; lanes past V hold -infinity, which affects neither a
// maximum nor a sum of exponentials.
template <class F>
HWY_INLINE void ForEach16(const float* row, size_t V, F f) {
  size_t j = 0;
  for (; j + kVirtualLanes <= V; j += kVirtualLanes) f(Load16(row + j), j, kVirtualLanes);
  if (j < V) f(LoadN16(row + j, V - j, kNothing), j, V - j);
}

HWY_INLINE void StoreUpTo16(const V16& x, float* p, size_t n) {
  if (n == kVirtualLanes) {
    Store16(x, p);
  } else {
    StoreN16(x, p, n);
  }
}

float RowMax(const float* row, size_t V) {
  V16 max = Set16(kNothing);
  ForEach16(row, V, [&](const V16& x, size_t, size_t) HWY_ATTR { max = Max16(max, x); });
  return MaxLane16(max);
}

// The sum of e^(row[j] - shift); the terms are also written to `out` if it is not null.
float RowExp(const float* row, size_t V, float shift, float* out) {
  const V16 shift16 = Set16(shift);
  V16 sum = Set16(0.0f);
  ForEach16(row, V, [&](const V16& x, size_t j, size_t n) HWY_ATTR {
    const V16 e = Exp16(Sub16(x, shift16));
    sum = Add16(sum, e);
    if (out != nullptr) StoreUpTo16(e, out + j, n);
  });
  return Sum16(sum);
}

void RowScale(float* row, size_t V, float factor) {
  const V16 factor16 = Set16(factor);
  ForEach16(row, V, [&](const V16& x, size_t j, size_t n) HWY_ATTR { StoreUpTo16(Mul16(x, factor16), row + j, n); });
}

}  // namespace

// Three passes over a row; the second and third find it in the cache. The log is computed in double and rounded once:
// float versions of log differ between C libraries.
void CrossEntropyRows(float* logits, size_t stride, const int32_t* targets, size_t rows, size_t V, float scale,
                      float* losses, bool gradient) {
  for (size_t r = 0; r < rows; ++r) {
    float* row = logits + r * stride;
    if (targets[r] == kIgnoreTarget) {
      losses[r] = 0.0f;
      if (gradient) std::memset(row, 0, V * sizeof(float));
      continue;
    }
    const size_t target = static_cast<size_t>(targets[r]);
    const float max = RowMax(row, V);
    const double chosen = static_cast<double>(row[target]);
    const float sum = RowExp(row, V, max, gradient ? row : nullptr);
    losses[r] = static_cast<float>(std::log(static_cast<double>(sum)) + static_cast<double>(max) - chosen);
    if (!gradient) continue;
    RowScale(row, V, scale / sum);
    row[target] -= scale;
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(CrossEntropyRows);

}  // namespace

void cross_entropy(float* logits, size_t stride, const int32_t* targets, size_t rows, size_t V, float scale,
                   float* losses, bool gradient) noexcept {
  HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(logits, stride, targets, rows, V, scale, losses, gradient);
}

}  // namespace quern::kernels
#endif
