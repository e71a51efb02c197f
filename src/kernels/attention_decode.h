// Causal self-attention of new positions against a cache of the keys and values of all earlier positions.
//
// The numerical contract is that of attention.h: out is bit-identical to the same rows of attention_forward, without
// dropout, over the entire sequence. The split between cached and new positions therefore changes nothing.
#pragma once

#include <cstddef>
#include <span>

#include "core/range.h"

namespace quern::kernels {

struct CacheShape {
  size_t heads;     // of queries; C = heads * head_dim
  size_t kv_heads;  // of keys and values, as in AttentionShape
  size_t head_dim;  // 1 ... kMaxHeadDim
  size_t capacity;  // maximum number of positions in the cache

  size_t group() const { return heads / kv_heads; }
  size_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// New positions `first` ... `first + rows - 1`; those before `first` are in the cache.
struct NewPositions {
  CacheShape shape;
  const float* qkv;  // (rows, qkv_width()): q | k | v, as in attention.h
  size_t rows;
  size_t first;
};

// Size of a cache in floats: capacity * 2 * kv_heads * head_dim, plus rounding up to full blocks and vectors. Needs no
// initialization; the same for every target.
size_t attention_cache_size(const CacheShape& shape) noexcept;

// Stores these heads of keys and values for the new positions. Any alignment, no allocation; first + rows <= capacity.
// Other threads may write or read other heads concurrently.
void attention_cache_store(const NewPositions& positions, Range kv_heads, float* cache) noexcept;

size_t attention_decode_scratch(const CacheShape& shape) noexcept;  // floats

// out (rows, C) = softmax(q k^T / sqrt(head_dim), causal) v, for the columns of these heads of queries. The new
// positions of their keys and values must have been stored. Any alignment, no allocation; scratch.size() >=
// attention_decode_scratch(shape), one per thread.
void attention_decode(const NewPositions& positions, Range heads, const float* cache, float* out,
                      std::span<float> scratch) noexcept;

}  // namespace quern::kernels
