// Packing of GEMM's operands: panels of B in the order the tile reads them, A where it cannot be read in place.
// Included per target, after vec-inl.h.
#if defined(QUERN_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_GEMM_PACK_INL_H_
#undef QUERN_KERNELS_GEMM_PACK_INL_H_
#else
#define QUERN_KERNELS_GEMM_PACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/tile-inl.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// Where element (row, col) of an operand lies.
HWY_INLINE const void* At(const Operand& operand, size_t row, size_t col) {
  return static_cast<const char*>(operand.data) + (row * operand.stride + col) * size_of(operand.type);
}

// out (rows, cols) = the part of `operand` that starts at (row, col), as fp32.
HWY_INLINE void CopyAsFloat(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols, float* out,
                            size_t out_stride) {
  for (size_t r = 0; r < rows; ++r, out += out_stride) {
    const void* in = At(operand, row + r, col);
    switch (operand.type) {
      case DType::kF32: std::memcpy(out, in, cols * sizeof(float)); break;
      case DType::kBF16: from_bf16(static_cast<const Half*>(in), out, cols); break;
      case DType::kF16: from_f16(static_cast<const Half*>(in), out, cols); break;
    }
  }
}

// 16-bit rows are widened this many columns at a time before they are transposed: 48 rows x 64 floats = 12 KiB of L1.
constexpr size_t kWidenColumns = 64;

// panel (cols, width) = transpose of `rows` rows of `operand` from (row, col), rows past them zero.
HWY_INLINE void PackTransposed(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols, float* panel,
                               size_t width) {
  if (rows < width) std::memset(panel, 0, cols * width * sizeof(float));
  if (operand.type == DType::kF32) {
    TransposeCopy(static_cast<const float*>(At(operand, row, col)), operand.stride, rows, cols, panel, width);
    return;
  }
  HWY_ALIGN float wide[kTileCols * kWidenColumns];
  for (size_t c = 0; c < cols; c += kWidenColumns) {
    const size_t n = std::min(kWidenColumns, cols - c);
    CopyAsFloat(operand, row, col + c, rows, n, wide, kWidenColumns);
    TransposeCopy(wide, kWidenColumns, rows, n, panel + c * width, width);
  }
}

// panel (rows, width) = `cols` columns of `operand` from (row, col), columns past them zero.
template <size_t width>
HWY_INLINE void PackStraight(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols, float* panel) {
  if (operand.type == DType::kF32 && cols == width) {
    const float* in = static_cast<const float*>(At(operand, row, col));
    for (size_t r = 0; r < rows; ++r, in += operand.stride, panel += width) {
      // Rows lie pages apart, where no hardware prefetcher follows: ask for the neighbour panel's part of this row.
#ifdef PFB
      for (size_t c = 0; c < width; c += 16) __builtin_prefetch(in + width + c);
#endif
      std::memcpy(panel, in, width * sizeof(float));
    }
    return;
  }
  if (cols < width) std::memset(panel, 0, rows * width * sizeof(float));
  CopyAsFloat(operand, row, col, rows, cols, panel, width);
}

// Columns j ... j + M of A^T, which lies as (K, M), as panels of kTileRows columns one after the other. Four panels are
// written at once, so that whole cache lines of each row are read.
HWY_INLINE void PackPanelsA(const Operand& a, size_t k, size_t K, size_t i, size_t M, float* panels) {
  constexpr size_t kGroup = 4 * kTileRows;
  size_t m = 0;
  if (a.type == DType::kF32) {
    for (; m + kGroup <= M; m += kGroup) {
      const float* in = static_cast<const float*>(At(a, k, i + m));
      float* out = panels + m * K;
      for (size_t r = 0; r < K; ++r, in += a.stride, out += kTileRows) {
#ifdef PFA
        for (size_t c = 0; c < kGroup; c += 16) __builtin_prefetch(in + kGroup + c);
#endif
        Unroll<4>([&](auto p) { std::memcpy(out + p * K * kTileRows, in + p * kTileRows, kTileRows * sizeof(float)); });
      }
    }
  }
  for (; m < M; m += kTileRows) {
    PackStraight<kTileRows>(a, k, i + m, K, std::min(kTileRows, M - m), panels + m * K);
  }
}

// Columns of B in one panel starting at column j of N, as whole vectors: full panels, then one that is as narrow as fits.
HWY_INLINE size_t PanelWidth(size_t j, size_t N) { return (std::min(N - j, kTileCols) + kN - 1) / kN * kN; }

// panel (K, kTileCols) = rows k ... k + K and columns j ... of B.
HWY_INLINE void PackPanelB(Layout layout, const Operand& b, size_t k, size_t K, size_t j, size_t N, float* panel) {
  const size_t cols = std::min(N - j, kTileCols);
  if (layout == Layout::kNT) {
    PackTransposed(b, j, k, cols, K, panel, kTileCols);
  } else {
    PackStraight<kTileCols>(b, k, j, K, cols, panel);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GEMM_PACK_INL_H_
