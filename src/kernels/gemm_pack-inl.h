// Packing of GEMM's operands: panels of B in the order in which the tile reads them, and A if it cannot be read in
// place. Included per target, after vec-inl.h.
#if defined(QUERN_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_GEMM_PACK_INL_H_
#undef QUERN_KERNELS_GEMM_PACK_INL_H_
#else
#define QUERN_KERNELS_GEMM_PACK_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "kernels/convert-inl.h"
#include "kernels/gemm.h"
#include "kernels/tile-inl.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// The address of element (row, col) of an operand.
HWY_INLINE const void* At(const Operand& operand, size_t row, size_t col) {
  return static_cast<const char*>(operand.data) + (row * operand.stride + col) * size_of(operand.type);
}

template <DType type>
HWY_INLINE void WidenRow(const void* in, float* HWY_RESTRICT out, size_t n) {
  const auto* p = static_cast<const Stored<type>*>(in);
  size_t i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(LoadAs<type>(p + i), d, out + i);
  const size_t rest = n % kN;
  if (rest > 0) StoreNAs<DType::kF32>(LoadNAs<type>(p + i, rest), out + i, rest);
}

// out (rows, cols) = the part of `operand` that starts at (row, col), as fp32.
HWY_INLINE void CopyAsFloat(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols, float* out,
                            size_t out_stride) {
  for (size_t r = 0; r < rows; ++r, out += out_stride) {
    const void* in = At(operand, row + r, col);
    switch (operand.type) {
      case DType::kF32:
        std::memcpy(out, in, cols * sizeof(float));
        break;
      case DType::kBF16:
        WidenRow<DType::kBF16>(in, out, cols);
        break;
      case DType::kF16:
        WidenRow<DType::kF16>(in, out, cols);
        break;
    }
  }
}

// 16-bit rows are widened this many columns at a time before they are transposed: 48 rows x 64 floats = 12 KiB of L1.
constexpr size_t kWidenColumns = 64;

// panel (cols, width) = transpose of `rows` rows of `operand` from (row, col), zero-padded to `width`.
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

// Copies n floats with the widest loads and stores; memcpy of a constant size moves 16 bytes at a time (g++ 12).
template <size_t n>
HWY_INLINE void CopyFixed(const float* HWY_RESTRICT in, float* HWY_RESTRICT out) {
  constexpr size_t kStep = std::min(kN, std::bit_floor(n));
  const hn::FixedTag<float, kStep> ds;
  hn::StoreU(hn::LoadU(ds, in), ds, out);
  if constexpr (n > kStep) CopyFixed<n - kStep>(in + kStep, out + kStep);
}

// Full panels of `width` columns: panel p (rows, width) at panels + p * panel_stride = columns col + p * width ... of
// `operand`. Row by row, so that memory is read in long runs; the hardware does not prefetch across pages.
template <size_t width>
HWY_INLINE void PackWholePanels(const Operand& operand, size_t row, size_t col, size_t rows, size_t count,
                                float* panels, size_t panel_stride) {
  for (size_t r = 0; r < rows; ++r) {
    const float* HWY_RESTRICT in = static_cast<const float*>(At(operand, row + r, col));
    float* HWY_RESTRICT out = panels + r * width;
    for (size_t p = 0; p < count; ++p, in += width, out += panel_stride) CopyFixed<width>(in, out);
  }
}

template <size_t width>
HWY_INLINE void PackStraightF32(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols, float* panels,
                                size_t panel_stride) {
  const size_t whole = cols / width, rest = cols % width;
  PackWholePanels<width>(operand, row, col, rows, whole, panels, panel_stride);
  if (rest == 0) return;
  float* last = panels + whole * panel_stride;
  std::memset(last, 0, rows * width * sizeof(float));
  CopyAsFloat(operand, row, col + whole * width, rows, rest, last, width);
}

// Panels of `width` columns that cover columns col ... col + cols; the last is padded with zeros. A panel has `rows`
// rows, and panels are panel_stride floats apart. 16-bit numbers are first widened in blocks, because a row of a panel
// may be shorter than a vector (384 x 384 x 256, A^T in bf16: 165 GFLOPS instead of 127).
template <size_t width>
HWY_INLINE void PackStraight(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols, float* panels,
                             size_t panel_stride) {
  if (operand.type == DType::kF32) return PackStraightF32<width>(operand, row, col, rows, cols, panels, panel_stride);
  constexpr size_t kColumns = kWidenColumns / width * width, kRows = 48;
  HWY_ALIGN float wide[kRows * kWidenColumns];
  for (size_t r = 0; r < rows; r += kRows) {
    const size_t height = std::min(kRows, rows - r);
    for (size_t c = 0; c < cols; c += kColumns) {
      const size_t n = std::min(kColumns, cols - c);
      CopyAsFloat(operand, row + r, col + c, height, n, wide, kWidenColumns);
      PackStraightF32<width>({wide, kWidenColumns}, 0, 0, height, n, panels + c / width * panel_stride + r * width,
                             panel_stride);
    }
  }
}

// Rows k ... k + K and columns j ... j + N of B as panels of kTileCols columns, one every panel_stride floats.
HWY_INLINE void PackPanelsB(Layout layout, const Operand& b, size_t k, size_t K, size_t j, size_t N, float* panels,
                            size_t panel_stride) {
  if (layout != Layout::kNT) return PackStraight<kTileCols>(b, k, j, K, N, panels, panel_stride);
  for (size_t c = 0; c < N; c += kTileCols, panels += panel_stride) {
    PackTransposed(b, j + c, k, std::min(N - c, kTileCols), K, panels, kTileCols);
  }
}

template <DType kType>
HWY_INLINE void NarrowRow(const float* HWY_RESTRICT in, Half* HWY_RESTRICT out, size_t vectors) {
  for (; vectors >= 4; vectors -= 4, in += 4 * kN, out += 4 * kN) {
    StoreAsx4<kType>(hn::Load(d, in), hn::Load(d, in + kN), hn::Load(d, in + 2 * kN), hn::Load(d, in + 3 * kN), out);
  }
  for (; vectors > 0; --vectors, in += kN, out += kN) StoreAs<kType>(hn::Load(d, in), out);
}

// PackPanelsB into 16-bit panels, via at most 64 rows of panels in L1. Straight rows are processed in pieces of 8
// panels, so that memory is read in long runs; transposed panels, whose rows are columns of B, one by one.
template <DType kType>
void PackNarrowB(const PackB& p, Half* panels) {
  const size_t depth = p.layout == Layout::kNT ? 64 : 8, width = 64 / depth * kTileCols;
  HWY_ALIGN float wide[64 * kTileCols];
  for (size_t k = 0; k < p.rows.size(); k += depth) {
    const size_t K = std::min(depth, p.rows.size() - k);
    for (size_t j = 0; j < p.columns.size(); j += width) {
      const size_t N = std::min(width, p.columns.size() - j);
      PackPanelsB(p.layout, p.b, p.rows.begin + k, K, p.columns.begin + j, N, wide, kTileCols * K);
      for (size_t c = 0; c < N; c += kTileCols) {
        NarrowRow<kType>(wide + c * K, panels + ((j + c) * p.K + k * kTileCols), K * kTileVecs);
      }
    }
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GEMM_PACK_INL_H_
