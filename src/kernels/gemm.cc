#include "kernels/gemm.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/gelu-inl.h"
#include "kernels/gemm_pack-inl.h"
#include "kernels/tile-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// A panel of B is depth x kTileCols: 256 x 48 x 4 = 48 KiB on AVX3, 256 x 16 x 4 = 16 KiB on AVX2. It stays in L1 (or
// streams from L2) while the block of A, 256 x 256 x 4 = 256 KiB, comes from L2 once per panel.
#ifndef KC
#define KC 256
#define MC 256
#endif
constexpr size_t kMaxDepth = KC;
constexpr size_t kMaxRows = MC;

// Scratch: the block of A, then panels of B.
constexpr size_t kScratchA = (kMaxRows + kTileRows) * (kMaxDepth + 16);
constexpr size_t kScratchB = kGemmScratch - kScratchA;
static_assert(kScratchB >= kMaxDepth * kTileCols);

// Splits n into equal parts of at most `most`: 384 is 192 + 192, not 256 + 128.
size_t EqualPart(size_t n, size_t most) {
  const size_t parts = (n + most - 1) / most;
  return (n + parts - 1) / parts;
}

// A block of A as the tile reads it.
struct BlockA {
  ALayout layout;
  const float* data;
  size_t stride;       // the tile's a_stride
  size_t tile_stride;  // floats from one tile of rows to the next
};

// Rows i ... i + M and columns k ... k + K of A. Row-major fp32 is read in place; A^T is packed tile by tile, because its
// rows are far apart; 16-bit numbers are widened once.
BlockA PrepareA(const Gemm& g, size_t i, size_t M, size_t k, size_t K, float* scratch) {
  if (g.layout == Layout::kTN) {
#ifdef DIRECT_TN
    if (g.N <= DIRECT_TN && g.a.type == DType::kF32) return {ALayout::kPanel, static_cast<const float*>(At(g.a, k, i)), g.a.stride, kTileRows};
#endif
    PackPanelsA(g.a, k, K, i, M, scratch);
    return {ALayout::kPanel, scratch, kTileRows, kTileRows * K};
  }
  if (g.a.type == DType::kF32) {
    return {ALayout::kRows, static_cast<const float*>(At(g.a, i, k)), g.a.stride, kTileRows * g.a.stride};
  }
  const size_t stride = kMaxDepth + 16;  // not a power of two: rows of a tile must not share a cache set
  CopyAsFloat(g.a, i, k, M, K, scratch, stride);
  return {ALayout::kRows, scratch, stride, kTileRows * stride};
}

V EpilogueOf(const Gemm& g, V x, const float* bias, const float* residual, float* gelu_input) {
  switch (g.epilogue) {
    case Epilogue::kNone: return x;
    case Epilogue::kBias: return hn::Add(x, hn::LoadU(d, bias));
    case Epilogue::kResidual: return hn::Add(x, hn::LoadU(d, residual));
    case Epilogue::kBiasResidual: return hn::Add(hn::Add(x, hn::LoadU(d, bias)), hn::LoadU(d, residual));
    case Epilogue::kBiasGelu: {
      const V y = hn::Add(x, hn::LoadU(d, bias));
      if (gelu_input != nullptr) hn::StoreU(y, d, gelu_input);
      return Gelu(y);
    }
  }
  return x;
}

// Finishes rows i ... and columns j ... of C while they are in L1.
void ApplyEpilogue(const Gemm& g, size_t i, size_t rows, size_t j, size_t cols) {
  for (size_t r = i; r < i + rows; ++r) {
    const size_t at = r * g.c_stride + j;
    const float* residual = g.residual != nullptr ? g.residual + at : nullptr;
    const float* bias = g.bias != nullptr ? g.bias + j : nullptr;
    float* input = g.gelu_input != nullptr ? g.gelu_input + at : nullptr;
    size_t c = 0;
    for (; c + kN <= cols; c += kN) {
      const V x = hn::LoadU(d, g.c + at + c);
      hn::StoreU(EpilogueOf(g, x, bias + c, residual + c, input != nullptr ? input + c : nullptr), d, g.c + at + c);
    }
    if (c == cols) continue;
    const size_t bytes = (cols - c) * sizeof(float);
    HWY_ALIGN float x[kN] = {}, b[kN] = {}, e[kN] = {}, y[kN] = {};
    std::memcpy(x, g.c + at + c, bytes);
    if (bias != nullptr) std::memcpy(b, bias + c, bytes);
    if (residual != nullptr) std::memcpy(e, residual + c, bytes);
    hn::Store(EpilogueOf(g, hn::Load(d, x), b, e, y), d, x);
    std::memcpy(g.c + at + c, x, bytes);
    if (input != nullptr) std::memcpy(input + c, y, bytes);
  }
}

// One tile of C whose last vector is not whole: through a buffer, so that nothing past column N is touched.
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

// A panel of B: kTileCols columns from j, `depth` rows.
struct PanelB {
  const float* data;
  size_t j, depth;
};

// Asks for the lines of a tile of C, which is used a tile's time (about 3,000 cycles) later.
void PrefetchTile(const float* c, size_t c_stride, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t j = 0; j < cols; j += 16) __builtin_prefetch(c + r * c_stride + j, 1);
  }
}

// C[i ... i + M, panel] = or += A[block] B[panel].
void MultiplyPanel(const Gemm& g, const BlockA& a, const PanelB& b, size_t i, size_t M, bool add, bool last) {
  const size_t cols = std::min(kTileCols, g.N - b.j);
  const size_t vecs = (cols + kN - 1) / kN;
  TileArgs args{.K = b.depth, .a = a.data, .a_stride = a.stride, .b = b.data, .b_stride = kTileCols, .c = nullptr,
                .c_stride = g.c_stride, .add = add};
  PrefetchTile(g.c + i * g.c_stride + b.j, g.c_stride, std::min(kTileRows, M), cols);
  for (size_t r = 0; r < M; r += kTileRows) {
    const size_t rows = std::min(kTileRows, M - r);
    const TileFunction tile =
        a.layout == ALayout::kRows ? TileFor<ALayout::kRows>(rows, vecs) : TileFor<ALayout::kPanel>(rows, vecs);
    args.c = g.c + (i + r) * g.c_stride + b.j;
    if (r + rows < M) PrefetchTile(args.c + rows * g.c_stride, g.c_stride, std::min(kTileRows, M - r - rows), cols);
    if (cols % kN == 0) {
      tile(args);
    } else {
      EdgeTile(tile, args, rows, cols);
    }
    args.a += a.tile_stride;
    if (last && g.epilogue != Epilogue::kNone) ApplyEpilogue(g, i + r, rows, b.j, cols);
  }
}

void Multiply(const Gemm& g, float* scratch) {
  const size_t depth = EqualPart(g.K, kMaxDepth);
  const size_t block = (EqualPart(g.M, kMaxRows) + kTileRows - 1) / kTileRows * kTileRows;
  float* panels = scratch + kScratchA;
  // With several blocks of rows the panels are kept for the next block where they fit; with one they share a place in L1.
  const size_t panel_stride = depth * kTileCols;
  const size_t panel_count = (g.N + kTileCols - 1) / kTileCols;
  const bool keep = g.M > block && panel_stride * panel_count <= kScratchB;
  for (size_t k = 0; k < g.K; k += depth) {
    const size_t K = std::min(depth, g.K - k);
    for (size_t i = 0; i < g.M; i += block) {
      const size_t M = std::min(block, g.M - i);
      const BlockA a = PrepareA(g, i, M, k, K, scratch);
      for (size_t j = 0, p = 0; j < g.N; j += kTileCols, ++p) {
        const float* panel = g.packed_b + (p * g.K + k) * kTileCols;
        if (g.packed_b == nullptr) {
          float* place = panels + (keep ? p * panel_stride : 0);
          if (!keep || i == 0) PackPanelB(g.layout, g.b, k, K, j, g.N, place);
          panel = place;
        }
        MultiplyPanel(g, a, {panel, j, K}, i, M, g.add || k > 0, k + K == g.K);
      }
    }
  }
}

// K = 0: the empty sum.
void MultiplyNothing(const Gemm& g) {
  for (size_t i = 0; i < g.M && !g.add; ++i) std::memset(g.c + i * g.c_stride, 0, g.N * sizeof(float));
  if (g.epilogue != Epilogue::kNone) ApplyEpilogue(g, 0, g.M, 0, g.N);
}

}  // namespace

void Run(const Gemm& g, float* scratch) {
  if (g.M == 0 || g.N == 0) return;
  if (g.K == 0) {
    MultiplyNothing(g);
  } else {
    Multiply(g, scratch);
  }
}

size_t PackedSize(size_t K, size_t N) { return (N + kTileCols - 1) / kTileCols * kTileCols * K; }

void PackB(Layout layout, const Operand& b, size_t K, size_t N, float* packed) {
  for (size_t j = 0; j < N; j += kTileCols, packed += K * kTileCols) PackPanelB(layout, b, 0, K, j, N, packed);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(Run);
HWY_EXPORT(PackedSize);
HWY_EXPORT(PackB);

}  // namespace

void gemm(const Gemm& args, std::span<float> scratch) noexcept {
  assert(scratch.size() >= kGemmScratch);
  assert(args.residual == nullptr || args.residual != args.c);
  HWY_DYNAMIC_DISPATCH(Run)(args, scratch.data());
}

size_t packed_size(size_t K, size_t N) noexcept { return HWY_DYNAMIC_DISPATCH(PackedSize)(K, N); }

void pack_b(Layout layout, const Operand& b, size_t K, size_t N, float* packed) noexcept {
  HWY_DYNAMIC_DISPATCH(PackB)(layout, b, K, N, packed);
}

}  // namespace quern::kernels
#endif
