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

// Several queries against a head. `keys` is how many positions the last of them sees; each sees `step` more than the
// one before: 1 for consecutive positions, 0 for heads of one position.
struct Queries {
  ConstRows q;
  Rows out;
  size_t count, keys, step;
  size_t seen_by(size_t i) const { return keys - (count - 1 - i) * step; }
};

void DecodeQueries(const CachedHead<const float>& head, const DecodeScratch& scratch, const Queries& queries) {
  const size_t D = head.head_dim;
  const Rows scores = {scratch.scores, scratch.score_stride}, out = {scratch.out, scratch.width};
  Ahead none;
  for (size_t key = 0; key < queries.keys; key += kCacheKeys) {
    const size_t keys = std::min(kCacheKeys, queries.keys - key);
    MultiplyBlock<ALayout::kRows>(
        queries.count, keys,
        {D, queries.q.data, queries.q.stride, head.keys + key * D, kCacheKeys, scores.data + key, scores.stride, false},
        none);
  }
  float sums[DecodeScratch::kQueries];
  for (size_t i = 0; i < queries.count; ++i) {
    const size_t n = queries.seen_by(i);
    sums[i] = ExpRow(scores.row(i), n, ScoreScale(D), MaxOf(scores.row(i), n));
    if (n < queries.keys) std::fill(scores.row(i) + n, scores.row(i) + queries.keys, 0.0f);
  }
  for (size_t i = 0; i < queries.count; i += kTileRows) {
    const size_t rows = std::min(kTileRows, queries.count - i);
    MultiplyBlock<ALayout::kRows>(rows, D,
                                  {queries.seen_by(i + rows - 1), scores.row(i), scores.stride, head.values, head.width,
                                   out.row(i), out.stride, false},
                                  none);
  }
  for (size_t i = 0; i < queries.count; ++i) CopyOut(out.row(i), D, 1.0f / sums[i], queries.out.row(i));
}

// The new positions of one head of queries.
void DecodeHead(const NewPositions& positions, size_t h, const CachedHead<const float>& head,
                const DecodeScratch& scratch, float* out) {
  const size_t D = head.head_dim, C = positions.shape.heads * D, stride = positions.shape.qkv_width();
  for (size_t i = 0; i < positions.rows; i += DecodeScratch::kQueries) {
    const size_t count = std::min(DecodeScratch::kQueries, positions.rows - i);
    DecodeQueries(head, scratch,
                  {.q = {positions.qkv + i * stride + h * D, stride},
                   .out = {out + i * C + h * D, C},
                   .count = count,
                   .keys = positions.first + i + count,
                   .step = 1});
  }
}

// One new position of the heads `heads`, which share keys and values.
void DecodeGroup(const NewPositions& positions, Range heads, const CachedHead<const float>& head,
                 const DecodeScratch& scratch, float* out) {
  const size_t D = head.head_dim, keys = positions.first + 1;
  if (heads.size() == 1)
    return DecodeQuery(head, scratch, positions.qkv + heads.begin * D, keys, out + heads.begin * D);
  for (size_t h = heads.begin; h < heads.end; h += DecodeScratch::kQueries) {
    DecodeQueries(head, scratch,
                  {.q = {positions.qkv + h * D, D},
                   .out = {out + h * D, D},
                   .count = std::min(DecodeScratch::kQueries, heads.end - h),
                   .keys = keys,
                   .step = 0});
  }
}

}  // namespace

void AttentionDecode(const NewPositions& positions, Range heads, const float* cache, float* out, float* memory) {
  Carver carver(memory);
  const DecodeScratch scratch(positions.shape, carver);
  const size_t group = positions.shape.group();
  for (size_t h = heads.begin; h < heads.end;) {
    const size_t shared = h / group, end = std::min(heads.end, (shared + 1) * group);
    const CachedHead head(positions.shape, shared, cache);
    if (positions.rows == 1) {
      DecodeGroup(positions, {h, end}, head, scratch, out);
    } else {
      for (size_t each = h; each < end; ++each) DecodeHead(positions, each, head, scratch, out);
    }
    h = end;
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(AttentionDecode);

size_t attention_cache_size(const CacheShape& shape) noexcept { return shape.kv_heads * cached_head_size(shape); }

size_t attention_decode_scratch(const CacheShape& shape) noexcept {
  Carver carver;
  DecodeScratch(shape, carver);
  return carver.used();
}

void attention_cache_store(const NewPositions& positions, Range kv_heads, float* cache) noexcept {
  assert(positions.first + positions.rows <= positions.shape.capacity);
  const CacheShape& shape = positions.shape;
  const size_t D = shape.head_dim, values = shape.kv_heads * D;  // from keys to values
  for (size_t h = kv_heads.begin; h < kv_heads.end; ++h) {
    const CachedHead head(shape, h, cache);
    const float* key = positions.qkv + (shape.heads + h) * D;
    for (size_t i = 0; i < positions.rows; ++i, key += shape.qkv_width()) {
      head.store(positions.first + i, key, key + values);
    }
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
