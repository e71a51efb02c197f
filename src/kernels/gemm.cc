#include "kernels/gemm.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/gemm_pack-inl.h"
#include "kernels/tile-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// Depth of a block: the deeper, the less often C is reread and rewritten. The 8 rows of A that a tile moves along the
// panels of B, 8 x 768 x 4 = 24 KiB, still fit in L1.
constexpr size_t kMaxDepth = 768;

// Rows whose A is packed together, so that full cache lines of A^T are read: 6 tiles of 8 rows, 8 tiles of 6.
constexpr size_t kGroupRows = 48;
static_assert(kGroupRows % kTileRows == 0);

constexpr size_t kScratchA = kGroupRows * kMaxDepth;
constexpr size_t kScratchB = kGemmScratch - kScratchA;
static_assert(kScratchB >= kMaxDepth * kTileCols);

// Splits n into equal parts of at most `max`, multiples of `unit`: 1024 is 512 + 512, not 768 + 256.
size_t EqualPart(size_t n, size_t max, size_t unit) {
  const size_t parts = (n + max - 1) / max;
  return ((n + parts - 1) / parts + unit - 1) / unit * unit;
}

// A group of rows of A as Tile reads it.
struct GroupA {
  ALayout layout;
  const float* data;
  size_t stride;
  size_t tile_stride;  // floats between the rows of consecutive tiles
};

// Row-major fp32 is read in place; A^T is packed, because its rows are far apart; 16-bit numbers are widened.
bool IsCopied(const Gemm& g) { return g.layout == Layout::kTN || g.a.type != DType::kF32; }

// Rows i ... i + rows and columns k ... k + K of A; already in scratch if `saved`.
GroupA PrepareA(const Gemm& g, size_t i, size_t rows, size_t k, size_t K, float* scratch, bool saved) {
  if (!IsCopied(g)) {
    return {ALayout::kRows, static_cast<const float*>(At(g.a, i, k)), g.a.stride, kTileRows * g.a.stride};
  }
  if (g.layout == Layout::kTN) {
    if (!saved) PackStraight<kTileRows>(g.a, k, i, K, rows, scratch, kTileRows * K);
    return {ALayout::kPanel, scratch, kTileRows, kTileRows * K};
  }
  if (!saved) CopyAsFloat(g.a, i, k, rows, K, scratch, K);
  return {ALayout::kRows, scratch, K, kTileRows * K};
}

// One tile of C whose last vector is partial: goes through a buffer, so that nothing past column N is touched.
void EdgeTile(TileFunction tile, TileArgs args, size_t rows, size_t cols) {
  HWY_ALIGN float buffer[kTileRows * kTileCols];
  float* c = args.c;
  if (args.add) {
    std::memset(buffer, 0, sizeof(buffer));
    for (size_t r = 0; r < rows; ++r) std::memcpy(buffer + r * kTileCols, c + r * args.c_stride, cols * sizeof(float));
  }
  const size_t c_stride = args.c_stride;
  args.c = buffer;
  args.c_stride = kTileCols;
  tile(args);
  for (size_t r = 0; r < rows; ++r) std::memcpy(c + r * c_stride, buffer + r * kTileCols, cols * sizeof(float));
}

// Memory that a later part of the product reads, as rows of lines.
struct Region {
  const char* data = nullptr;
  size_t stride = 0;  // bytes
  size_t rows = 0, length = 0;
};

size_t LinesOf(size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

Region RegionOf(const Operand& operand, size_t row, size_t col, size_t rows, size_t cols) {
  const size_t size = size_of(operand.type);
  return {static_cast<const char*>(At(operand, row, col)), operand.stride * size, rows, LinesOf(cols * size)};
}

// Distributes a region over tiles, which prefetch it while they compute: memory is read at an even rate, concurrently
// with the arithmetic rather than before it.
class Ahead {
 public:
  Ahead(const Region& region, size_t tiles)
      : region_(region), left_(region.rows * region.length), share_((left_ + tiles - 1) / tiles) {}

  // The next share, of at most `max` lines.
  Lines Take(size_t max) {
    const size_t count = std::min({share_, max, left_});
    const Lines lines = {region_.data, region_.stride, region_.length, first_, count};
    left_ -= count;
    first_ += count;
    if (left_ > 0) {
      const size_t rows =
          static_cast<uint32_t>(first_) / static_cast<uint32_t>(region_.length);  // 32-bit division is faster
      region_.data += rows * region_.stride;
      first_ -= rows * region_.length;
    }
    return lines;
  }

 private:
  Region region_;
  size_t left_, share_, first_ = 0;
};

// Whether a tile prefetches the lines where y will be saved. Written cold, right after the tile, 24 of them stall what
// follows (AVX-512, 256 x 1536 x 384 with GELU: 133 GFLOPS instead of 143). With AVX2 there are 6, and prefetching
// gains nothing.
constexpr bool kFetchKept = kN == 16;

Lines LinesKept(const Gemm& g, size_t i, size_t j, size_t rows, size_t cols, size_t max) {
  const Region region = RegionOf({g.saved.data, g.c_stride, g.saved.type}, i, j, rows, cols);
  return {region.data, region.stride, region.length, 0, std::min(rows * region.length, max)};
}

TileFunction TileOf(ALayout layout, size_t rows, size_t vecs, bool keeps) {
  if (keeps && rows == kTileRows && vecs == kTileVecs) return &Tile<kTileRows, kTileVecs, ALayout::kRows, kFetchKept>;
  return layout == ALayout::kRows ? TileFor<ALayout::kRows>(rows, vecs) : TileFor<ALayout::kPanel>(rows, vecs);
}

// Panels of B: rows k ... k + K, columns j ... j + N of the entire matrix, `stride` floats apart.
struct BlockB {
  const float* panels;
  size_t stride;
  size_t row_stride;  // floats between rows of a panel
  size_t k, K, j, N;
};

// C[i ... i + rows, block] = or += A B: one tile of rows along the panels. `args` has A and everything that the tiles
// of the block share: if it were filled for every tile, the instructions that clear it would wait for the stores of the
// epilogue (AVX2, 256 x 512 x 128 with GELU and y saved to memory: 46 GFLOPS instead of 60).
void MultiplyRows(const Gemm& g, ALayout layout, TileArgs& args, const BlockB& b, size_t i, size_t rows, Ahead& ahead) {
  const FinishFunction finish = b.k + b.K == g.K ? FinishFor(g) : nullptr;
  const bool keeps = kFetchKept && layout == ALayout::kRows && finish != nullptr && g.saved.data != nullptr;
  args.b = b.panels;
  args.c = g.c + i * g.c_stride + b.j;
  for (size_t j = 0; j < b.N; j += kTileCols, args.b += b.stride, args.c += kTileCols) {
    const size_t cols = std::min(kTileCols, b.N - j);
    const size_t vecs = (cols + kN - 1) / kN;
    const TileFunction tile = TileOf(layout, rows, vecs, keeps);
    if (b.K >= kMinDepth) {  // past the last column or row the prefetches are useless but harmless
      const size_t max = (b.K - kMinDepth) / kStepsPerLine;
      args.next_c = j + kTileCols < b.N ? args.c + kTileCols : args.c - j + kTileRows * g.c_stride;
      if (keeps) args.own = LinesKept(g, i, b.j + j, rows, cols, max);
      args.ahead = ahead.Take(max - args.own.count);
    }
    if (cols % kN == 0) {
      tile(args);
    } else {
      EdgeTile(tile, args, rows, cols);
    }
    if (finish != nullptr) finish(g, i, rows, b.j + j, cols);
  }
}

size_t TilesOf(size_t rows, size_t cols) {
  return (rows + kTileRows - 1) / kTileRows * ((cols + kTileCols - 1) / kTileCols);
}

// All rows of C for one block of B. Prefetches the next group of A^T, or `next`, in the meantime.
void MultiplyAllRows(const Gemm& g, const BlockB& b, const Region& next, float* scratch) {
  Ahead ahead(next, TilesOf(g.M, b.N));
  TileArgs args{.K = b.K,
                .a = nullptr,
                .a_stride = 0,
                .b = nullptr,
                .b_stride = b.row_stride,
                .c = nullptr,
                .c_stride = g.c_stride,
                .add = g.add || b.k > 0};
  for (size_t i = 0; i < g.M; i += kGroupRows) {
    const size_t group = std::min(kGroupRows, g.M - i), rest = g.M - i - group;
    const GroupA a = PrepareA(g, i, group, b.k, b.K, scratch, g.M <= kGroupRows && b.j > 0);
    if (g.layout == Layout::kTN && rest > 0) {
      ahead = Ahead(RegionOf(g.a, b.k, i + group, b.K, std::min(kGroupRows, rest)), TilesOf(group, b.N));
    }
    for (size_t r = 0; r < group; r += kTileRows) {
      args.a = a.data + r / kTileRows * a.tile_stride;
      args.a_stride = a.stride;
      MultiplyRows(g, a.layout, args, b, i + r, std::min(kTileRows, group - r), ahead);
    }
  }
}

// A short A^T B would spend its time packing: 10 % of it with 128 rows of C. B is therefore read in place if it fits a
// quarter of L2; not if it is larger, because rows that are far apart map to few cache sets.
bool ReadsInPlace(const Gemm& g, size_t block) {
  return g.layout == Layout::kTN && g.packed_b == nullptr && g.b.type == DType::kF32 && g.N % kN == 0 &&
         g.K * g.N <= block / 2;
}

// With so few rows, iterating by single panels would gain nothing.
constexpr size_t kFewRows = 4 * kTileRows;

// Depth of a piece of a panel that occupies half of a 48 KiB L1 as fp32.
constexpr size_t kWidenedDepth = (size_t{24} << 10) / sizeof(float) / kTileCols;

// How a product is divided: blocks of `depth` rows and `width` columns of B.
struct Cut {
  size_t depth, width;
  bool narrow;    // a block is one panel, and the next one is prefetched in the meantime
  bool in_place;  // B is read in place
};

// Two strategies. If A fits half of L2, `block` floats, or a group, and B comes in panels or contiguous rows, a block
// is one panel, and all of A is multiplied with it while the next panel is prefetched. Otherwise a block is as many
// panels as fit half of L2, and each tile of rows of A moves along them: A is then read only once, and A^T packed once.
// For a short A^T B, B is read in place if it fits a quarter of L2, to save packing.
Cut CutOf(const Gemm& g, size_t block) {
  const size_t depth = EqualPart(g.K, kMaxDepth, 1);
  const bool together = g.packed_b != nullptr || g.layout == Layout::kNT;
  const bool fits = IsCopied(g) ? g.M <= kGroupRows : g.M * depth <= block;
  const bool narrow = together && fits && g.M > kFewRows;
  const size_t max = std::clamp(block, depth * kTileCols, kScratchB) / depth / kTileCols * kTileCols;
  return {depth, narrow ? kTileCols : EqualPart(g.N, max, kTileCols), narrow, ReadsInPlace(g, block)};
}

// The address of row k of panel j / kTileCols of a packed B.
const void* PackedAt(const Gemm& g, size_t k, size_t j) {
  return static_cast<const char*>(g.packed_b) + (j / kTileCols * g.K + k) * kTileCols * size_of(g.packed_type);
}

// The panels of B for a block: packed in advance, those of B itself, or packed or widened here.
BlockB PrepareB(const Gemm& g, const Cut& cut, size_t k, size_t j, float* scratch) {
  const size_t K = std::min(cut.depth, g.K - k), N = std::min(cut.width, g.N - j);
  if (g.packed_b != nullptr && g.packed_type == DType::kF32) {
    return {static_cast<const float*>(PackedAt(g, k, j)), g.K * kTileCols, kTileCols, k, K, j, N};
  }
  if (cut.in_place) return {static_cast<const float*>(At(g.b, k, j)), kTileCols, g.b.stride, k, K, j, N};
  if (g.packed_b != nullptr) {
    const size_t panels = (N + kTileCols - 1) / kTileCols;
    CopyAsFloat({PackedAt(g, k, j), g.K * kTileCols, g.packed_type}, 0, 0, panels, K * kTileCols, scratch,
                K * kTileCols);
  } else {
    PackPanelsB(g.layout, g.b, k, K, j, N, scratch, kTileCols * K);
  }
  return {scratch, kTileCols * K, kTileCols, k, K, j, N};
}

// The memory that a narrow block reads; empty past the last one.
Region RegionOfB(const Gemm& g, const Cut& cut, size_t k, size_t j) {
  if (j >= g.N) k += cut.depth, j = 0;
  if (!cut.narrow || k >= g.K) return {};
  const size_t K = std::min(cut.depth, g.K - k), N = std::min(cut.width, g.N - j);
  if (g.packed_b == nullptr) return RegionOf(g.b, j, k, N, K);
  return {static_cast<const char*>(PackedAt(g, k, j)), 0, 1, LinesOf(K * kTileCols * size_of(g.packed_type))};
}

// Few rows and 16-bit panels, as in generation: a piece of a panel that fits L1 is widened, and B is read sequentially,
// at memory speed.
void MultiplyFewRows(const Gemm& g, float* scratch) {
  const Cut cut{.depth = EqualPart(g.K, kWidenedDepth, 1), .width = kTileCols, .narrow = false, .in_place = false};
  for (size_t j = 0; j < g.N; j += cut.width) {
    for (size_t k = 0; k < g.K; k += cut.depth) {
      MultiplyAllRows(g, PrepareB(g, cut, k, j, scratch + kScratchA), {}, scratch);
    }
  }
}

void Multiply(const Gemm& g, float* scratch, size_t block) {
  if (g.packed_b != nullptr && g.packed_type != DType::kF32 && g.M <= kFewRows && !IsCopied(g)) {
    return MultiplyFewRows(g, scratch);
  }
  const Cut cut = CutOf(g, block);
  for (size_t k = 0; k < g.K; k += cut.depth) {
    for (size_t j = 0; j < g.N; j += cut.width) {
      MultiplyAllRows(g, PrepareB(g, cut, k, j, scratch + kScratchA), RegionOfB(g, cut, k, j + cut.width), scratch);
    }
  }
}

// K = 0: the empty sum.
void MultiplyNothing(const Gemm& g) {
  for (size_t i = 0; i < g.M && !g.add; ++i) std::memset(g.c + i * g.c_stride, 0, g.N * sizeof(float));
  if (const FinishFunction finish = FinishFor(g)) finish(g, 0, g.M, 0, g.N);
}

}  // namespace

void RunGemm(const Gemm& g, float* scratch, size_t block) {
  if (g.M == 0 || g.N == 0) return;
  if (g.K == 0) {
    MultiplyNothing(g);
  } else {
    Multiply(g, scratch, block);
  }
}

size_t GemmPackedSize(size_t K, size_t N) { return (N + kTileCols - 1) / kTileCols * kTileCols * K; }

void GemmPackB(const PackB& p) {
  const size_t at = (p.columns.begin / kTileCols * p.K + p.rows.begin) * kTileCols;
  switch (p.packed_type) {
    case DType::kF32:
      return PackPanelsB(p.layout, p.b, p.rows.begin, p.rows.size(), p.columns.begin, p.columns.size(),
                         static_cast<float*>(p.packed) + at, kTileCols * p.K);
    case DType::kBF16:
      return PackNarrowB<DType::kBF16>(p, static_cast<Half*>(p.packed) + at);
    case DType::kF16:
      return PackNarrowB<DType::kF16>(p, static_cast<Half*>(p.packed) + at);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(RunGemm);
HWY_EXPORT(GemmPackedSize);
HWY_EXPORT(GemmPackB);

// Half of L2 for the block of B; the rest for A, C and hardware prefetches. Affects only speed.
size_t block_floats() {
  static const size_t floats = [] {
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1 if the C library does not know
    return static_cast<size_t>(bytes > 0 ? bytes : 512 << 10) / 2 / sizeof(float);
  }();
  return floats;
}

}  // namespace

void gemm(const Gemm& args, std::span<float> scratch) noexcept {
  assert(scratch.size() >= kGemmScratch);
  assert(args.bias != nullptr || args.epilogue == Epilogue::kNone);
  HWY_DYNAMIC_DISPATCH(RunGemm)(args, scratch.data(), block_floats());
}

size_t packed_size(size_t K, size_t N) noexcept { return HWY_DYNAMIC_DISPATCH(GemmPackedSize)(K, N); }

void pack_b(const PackB& args) noexcept { HWY_DYNAMIC_DISPATCH(GemmPackB)(args); }

void pack_b(Layout layout, const Operand& b, size_t K, size_t N, void* packed, DType packed_type) noexcept {
  pack_b({.layout = layout,
          .b = b,
          .K = K,
          .packed = packed,
          .packed_type = packed_type,
          .rows = {0, K},
          .columns = {0, N}});
}

Gemm block_of(const Gemm& g, Range rows, Range columns) noexcept {
  assert(columns.begin % kPanelColumns == 0 || g.packed_b == nullptr);
  const auto moved = [](const Operand& x, size_t n) {
    return Operand{static_cast<const char*>(x.data) + n * size_of(x.type), x.stride, x.type};
  };
  const size_t within_c = rows.begin * g.c_stride + columns.begin;
  Gemm block = g;
  block.M = rows.size();
  block.N = columns.size();
  block.a = moved(g.a, g.layout == Layout::kTN ? rows.begin : rows.begin * g.a.stride);
  if (g.b.data != nullptr) block.b = moved(g.b, columns.begin * (g.layout == Layout::kNT ? g.b.stride : 1));
  if (g.packed_b != nullptr) {
    block.packed_b = static_cast<const char*>(g.packed_b) + columns.begin * g.K * size_of(g.packed_type);
  }
  if (g.c != nullptr) block.c = g.c + within_c;
  if (g.bias != nullptr) block.bias = g.bias + columns.begin;
  if (g.saved.data != nullptr) block.saved.data = static_cast<char*>(g.saved.data) + within_c * size_of(g.saved.type);
  return block;
}

}  // namespace quern::kernels
#endif
