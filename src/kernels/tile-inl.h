// The register tile on which GEMM and attention are built: a few rows by a few vectors of C, summed over k. Included
// per target, after vec-inl.h.
#if defined(QUERN_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_TILE_INL_H_
#undef QUERN_KERNELS_TILE_INL_H_
#else
#define QUERN_KERNELS_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// Accumulators + one row of B + one broadcast of A must fit the registers: 8x3 + 3 + 1 = 28 of 32 (AVX-512),
// 6x2 + 2 + 1 = 15 of 16 (AVX2, SSE4). Rows x vectors / 2 units >= 4 cycles of latency requires at least
// 8 accumulators. Plain C++ has no vector registers to fill, and emulated lanes are slow to compile, so its tile is
// small.
constexpr size_t kTileRows = kEmulated ? 2 : kN == 16 ? 8 : 6;
constexpr size_t kTileVecs = kEmulated ? 1 : kN == 16 ? 3 : 2;
constexpr size_t kTileCols = kTileVecs * kN;

// How the tile addresses element (i, k) of A.
enum class ALayout {
  kRows,   // a[i * a_stride + k]: rows as stored
  kPanel,  // a[k * a_stride + i]: transposed, or packed
};

// Lines of memory, row by row: `count` lines, starting at line `first` of a row of `length` lines.
struct Lines {
  const char* row = nullptr;
  size_t stride = 0;  // bytes between rows
  size_t length = 0, first = 0, count = 0;
};

// A tile prefetches while it computes: a row of C's next tile every 4 steps of k, then a line every 2 (24 cycles, or 12
// with AVX2). A line from L3 occupies one of the 10 to 16 fill buffers for 50 to 100 ns, so many prefetches at once
// would delay the tile's own loads.
constexpr size_t kStepsPerRow = 4;
constexpr size_t kStepsPerLine = 2;
constexpr size_t kMinDepth = kTileRows * kStepsPerRow;
constexpr size_t kLineBytes = 64;

struct TileArgs {
  size_t K;
  const float* a;
  size_t a_stride;
  const float* b;  // K rows of kVecs vectors
  size_t b_stride;
  float* c;
  size_t c_stride;
  bool add;                       // the chains start from C instead of 0
  const float* next_c = nullptr;  // C's next tile, to prefetch; only if K >= kMinDepth
  Lines ahead = {};               // to prefetch after next_c: at most (K - kMinDepth) / kStepsPerLine
  Lines own = {};                 // to prefetch before `ahead`, within the same limit; only if kOwn
};

template <size_t kRows, size_t kVecs, ALayout kLayout, bool kOwn = false>
void Tile(const TileArgs& args) {
  const float* HWY_RESTRICT a = args.a;
  const float* HWY_RESTRICT b = args.b;
  float* HWY_RESTRICT c = args.c;
  const size_t a_stride = args.a_stride, b_stride = args.b_stride, c_stride = args.c_stride;
  V sum[kRows * kVecs];
  if (args.add) {
    Unroll<kRows * kVecs>([&](auto i) HWY_ATTR { sum[i] = hn::LoadU(d, c + i / kVecs * c_stride + i % kVecs * kN); });
  } else {
    Unroll<kRows * kVecs>([&](auto i) HWY_ATTR { sum[i] = hn::Zero(d); });
  }
  const auto step = [&]() HWY_ATTR __attribute__((always_inline)) {
    V row[kVecs];
    Unroll<kVecs>([&](auto j) HWY_ATTR { row[j] = hn::LoadU(d, b + j * kN); });
    Unroll<kRows>([&](auto i) HWY_ATTR {
      const V broadcast = hn::Set(d, kLayout == ALayout::kRows ? a[i * a_stride] : a[i]);
      Unroll<kVecs>([&](auto j) HWY_ATTR { sum[i * kVecs + j] = hn::MulAdd(broadcast, row[j], sum[i * kVecs + j]); });
    });
    a += kLayout == ALayout::kRows ? 1 : a_stride;
    b += b_stride;
  };
  size_t k = args.K;
  // Only tiles with all rows prefetch: for the few at the edge, nine unrolled copies of the step would gain nothing.
  constexpr bool kPrefetches = kRows == kTileRows;
  if (kPrefetches && args.next_c != nullptr) {
    const float* next = args.next_c;
    for (size_t r = 0; r < kRows; ++r, next += c_stride, k -= kStepsPerRow) {
      for (size_t j = 0; j < kVecs * kN; j += kLineBytes / sizeof(float)) __builtin_prefetch(next + j);
      step(), step(), step(), step();
    }
    const auto fetch = [&](Lines lines) HWY_ATTR __attribute__((always_inline)) {
      for (; lines.count > 0; --lines.count, k -= kStepsPerLine) {
        __builtin_prefetch(lines.row + lines.first * kLineBytes);
        if (++lines.first == lines.length) lines.first = 0, lines.row += lines.stride;
        step(), step();
      }
    };
    if constexpr (kOwn) fetch(args.own);
    fetch(args.ahead);
  }
  for (; k > 0; --k) step();
  Unroll<kRows * kVecs>([&](auto i) HWY_ATTR { hn::StoreU(sum[i], d, c + i / kVecs * c_stride + i % kVecs * kN); });
}

using TileFunction = void (*)(const TileArgs&);

template <ALayout kLayout, size_t... i>
HWY_INLINE TileFunction PickTile(size_t index, std::index_sequence<i...>) {
  // static: an automatic table would be written to the stack at every call.
  static constexpr TileFunction table[] = {&Tile<i / kTileVecs + 1, i % kTileVecs + 1, kLayout>...};
  return table[index];
}
// The tile of `rows` (1 ... kTileRows) by `vecs` (1 ... kTileVecs).
template <ALayout kLayout>
HWY_INLINE TileFunction TileFor(size_t rows, size_t vecs) {
  return PickTile<kLayout>((rows - 1) * kTileVecs + vecs - 1, std::make_index_sequence<kTileRows * kTileVecs>());
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_TILE_INL_H_
