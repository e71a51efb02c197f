// A transposing copy in 4x4 blocks. Included per target, after vec-inl.h.
#if defined(QUERN_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_TRANSPOSE_INL_H_
#undef QUERN_KERNELS_TRANSPOSE_INL_H_
#else
#define QUERN_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstddef>

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// A vector whose 128-bit block b holds the 4 floats at p + b * stride.
template <class DV>
HWY_INLINE hn::Vec<DV> LoadBlocks(DV dv, const float* HWY_RESTRICT p, size_t stride) {
  constexpr size_t kLanes = hn::MaxLanes(DV());
  if constexpr (kLanes <= 4) {
    return hn::LoadU(dv, p);
  } else {
    const hn::Half<DV> dh;
    return hn::Combine(dv, LoadBlocks(dh, p + kLanes / 8 * stride, stride), LoadBlocks(dh, p, stride));
  }
}

// dst[k * dst_stride + r] = src[r * src_stride + k] for kN rows r and 4 columns k.
HWY_INLINE void TransposeBlock(const float* HWY_RESTRICT src, size_t src_stride, float* HWY_RESTRICT dst,
                               size_t dst_stride) {
  const hn::Repartition<double, D> d64;  // pairs of floats move as one
  const V r0 = LoadBlocks(d, src, 4 * src_stride);
  const V r1 = LoadBlocks(d, src + src_stride, 4 * src_stride);
  const V r2 = LoadBlocks(d, src + 2 * src_stride, 4 * src_stride);
  const V r3 = LoadBlocks(d, src + 3 * src_stride, 4 * src_stride);
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), d, dst + dst_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high01, high23)), d, dst + 2 * dst_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23)), d, dst + 3 * dst_stride);
}

// dst (cols, rows) = the transpose of src (rows, cols). Must not overlap.
HWY_INLINE void TransposeCopy(const float* HWY_RESTRICT src, size_t src_stride, size_t rows, size_t cols,
                              float* HWY_RESTRICT dst, size_t dst_stride) {
  size_t r = 0;
  for (; r + kN <= rows; r += kN) {
    size_t k = 0;
    for (; k + 4 <= cols; k += 4) {
      TransposeBlock(src + r * src_stride + k, src_stride, dst + k * dst_stride + r, dst_stride);
    }
    for (; k < cols; ++k) {
      for (size_t i = 0; i < kN; ++i) dst[k * dst_stride + r + i] = src[(r + i) * src_stride + k];
    }
  }
  for (; r < rows; ++r) {
    for (size_t k = 0; k < cols; ++k) dst[k * dst_stride + r] = src[r * src_stride + k];
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_TRANSPOSE_INL_H_
