#include "kernels/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary.cc"
#include "hwy/foreach_target.h"

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// Rotates kLanes pairs of elements, in place.
template <bool kInverse, size_t kLanes, class Vec>
HWY_INLINE void RotatePairs(Vec cosine, Vec sine, float* HWY_RESTRICT low, float* HWY_RESTRICT high) {
  const hn::FixedTag<float, kLanes> dl;
  const Vec x = hn::LoadU(dl, low), y = hn::LoadU(dl, high);
  const Vec xs = hn::Mul(x, sine), ys = hn::Mul(y, sine);
  hn::StoreU(kInverse ? hn::MulAdd(x, cosine, ys) : hn::MulSub(x, cosine, ys), dl, low);
  hn::StoreU(kInverse ? hn::MulSub(y, cosine, xs) : hn::MulAdd(y, cosine, xs), dl, high);
}

// Pairs j ... d/2 of each head of a row, in vectors of kLanes, then of half as many, down to one: halves of 8 or 12
// elements are common, and shorter vectors are faster than buffers for the end. The cosines and sines of a vector are
// loaded once for all heads.
template <bool kInverse, size_t kLanes>
HWY_INLINE void RotateRow(const RotaryShape& shape, const float* HWY_RESTRICT table, float* HWY_RESTRICT x, size_t j) {
  const hn::FixedTag<float, kLanes> dl;
  const size_t half = shape.head_dim / 2;
  for (; j + kLanes <= half; j += kLanes) {
    const auto cosine = hn::LoadU(dl, table + j), sine = hn::LoadU(dl, table + half + j);
    for (size_t h = 0; h < shape.heads; ++h) {
      float* low = x + h * shape.head_dim + j;
      RotatePairs<kInverse, kLanes>(cosine, sine, low, low + half);
    }
  }
  if constexpr (kLanes > 1) {
    if (j < half) RotateRow<kInverse, kLanes / 2>(shape, table, x, j);
  }
}

template <bool kInverse>
HWY_INLINE void RotateRows(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) {
  for (size_t r = 0; r < rows; ++r) {
    RotateRow<kInverse, kN>(shape, table + (first + r) * shape.head_dim, x + r * shape.stride, 0);
  }
}

}  // namespace

void RotaryForward(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) {
  RotateRows<false>(shape, table, first, x, rows);
}

void RotaryBackward(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) {
  RotateRows<true>(shape, table, first, x, rows);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(RotaryForward);
HWY_EXPORT(RotaryBackward);

void rotary_forward(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) noexcept {
  HWY_DYNAMIC_DISPATCH(RotaryForward)(shape, table, first, x, rows);
}

void rotary_backward(const RotaryShape& shape, const float* table, size_t first, float* x, size_t rows) noexcept {
  HWY_DYNAMIC_DISPATCH(RotaryBackward)(shape, table, first, x, rows);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
