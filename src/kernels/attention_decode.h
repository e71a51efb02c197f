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
  size_t heads;     // C = heads * head_dim
  size_t head_dim;  // 1 ... kMaxHeadDim
  size_t capacity;  // maximum number of positions in the cache
};

// New positions `first` ... `first + rows - 1`; those before `first` are in the cache.
struct NewPositions {
  CacheShape shape;
  const float* qkv;  // (rows, 3C): q | k | v, each (heads, head_dim)
  size_t rows;
  size_t first;
};

// Size of a cache in floats: capacity * 2C, plus rounding up to full blocks and vectors. Needs no initialization; the
// same for every target.
size_t attention_cache_size(const CacheShape& shape) noexcept;

// Stores the keys and values of these heads for the new positions. Any alignment, no allocation; first + rows <=
// capacity. Other threads may write or read other heads concurrently.
void attention_cache_store(const NewPositions& positions, Range heads, float* cache) noexcept;

size_t attention_decode_scratch(const CacheShape& shape) noexcept;  // floats

// out (rows, C) = softmax(q k^T / sqrt(head_dim), causal) v, for the columns of these heads. Their new positions must
// have been stored. Any alignment, no allocation; scratch.size() >= attention_decode_scratch(shape), one per thread.
void attention_decode(const NewPositions& positions, Range heads, const float* cache, float* out,
                      std::span<float> scratch) noexcept;

}  // namespace quern::kernels
