#include "kernels/attention_decode.h"

#include <algorithm>
#include <cassert>

#include "kernels/attention.h"
#include "kernels/attention_cache.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_decode.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// A single row has no other rows whose chains hide its latency, so its tile is wide enough to fill two units for 4
// cycles.
constexpr size_t kRowVecs = 8;

template <size_t... i>
HWY_INLINE TileFunction PickRowTile(size_t vecs, std::index_sequence<i...>) {
  static constexpr TileFunction table[] = {&Tile<1, i + 1, ALayout::kRows>...};
  return table[vecs - 1];
}

// c (N) = a (K) b (K, N), with b readable and c writable up to a full vector.
HWY_INLINE void MultiplyRow(size_t K, size_t N, const float* a, ConstRows b, float* c) {
  for (size_t vecs = (N + kN - 1) / kN; vecs > 0;) {
    const size_t part = std::min(vecs, kRowVecs);
    PickRowTile(part, std::make_index_sequence<kRowVecs>())({K, a, 0, b.data, b.stride, c, 0, false});
    vecs -= part;
    b.data += part * kN;
    c += part * kN;
  }
}

// One query against the first n positions of a head.
void DecodeQuery(const CachedHead<const float>& head, const DecodeScratch& scratch, const float* q, size_t n,
                 float* out) {
  const size_t D = head.head_dim;
  for (size_t key = 0; key < n; key += kCacheKeys) {
    MultiplyRow(D, std::min(kCacheKeys, n - key), q, {head.keys + key * D, kCacheKeys}, scratch.scores + key);
  }
  const float scale = ScoreScale(D);
  const float sum = ExpRow(scratch.scores, n, scale, MaxOf(scratch.scores, n));
  MultiplyRow(n, D, scratch.scores, {head.values, head.width}, scratch.out);
  CopyOut(scratch.out, D, 1.0f / sum, out);
}

}  // namespace

void AttentionDecode(const NewPositions& positions, Range heads, const float* cache, float* out, float* memory) {
  Carver carver(memory);
  const DecodeScratch scratch(positions.shape, carver);
  const size_t D = positions.shape.head_dim, C = positions.shape.heads * D;
  for (size_t h = heads.begin; h < heads.end; ++h) {
    const CachedHead head(positions.shape, h, cache);
    for (size_t i = 0; i < positions.rows; ++i) {
      DecodeQuery(head, scratch, positions.qkv + i * 3 * C + h * D, positions.first + i + 1, out + i * C + h * D);
    }
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(AttentionDecode);

size_t attention_cache_size(const CacheShape& shape) noexcept { return shape.heads * cached_head_size(shape); }

size_t attention_decode_scratch(const CacheShape& shape) noexcept {
  Carver carver;
  DecodeScratch(shape, carver);
  return carver.used();
}

void attention_cache_store(const NewPositions& positions, Range heads, float* cache) noexcept {
  assert(positions.first + positions.rows <= positions.shape.capacity);
  const size_t D = positions.shape.head_dim, C = positions.shape.heads * D;
  for (size_t h = heads.begin; h < heads.end; ++h) {
    const CachedHead head(positions.shape, h, cache);
    const float* row = positions.qkv + C + h * D;
    for (size_t i = 0; i < positions.rows; ++i, row += 3 * C) head.store(positions.first + i, row, row + C);
  }
}

void attention_decode(const NewPositions& positions, Range heads, const float* cache, float* out,
                      std::span<float> scratch) noexcept {
  assert(positions.shape.head_dim <= kMaxHeadDim);
  assert(positions.first + positions.rows <= positions.shape.capacity);
  assert(scratch.size() >= attention_decode_scratch(positions.shape));
  HWY_DYNAMIC_DISPATCH(AttentionDecode)(positions, heads, cache, out, scratch.data());
}

}  // namespace quern::kernels
#endif
