// Causal self-attention of new positions against a cache of the keys and values of all before them.
//
// The numerical contract is that of attention.h: out has the bits of the same rows of attention_forward, without
// dropout, over the whole sequence. So the cut between what is cached and what is new changes nothing.
#pragma once

#include <cstddef>
#include <span>

#include "core/range.h"

namespace quern::kernels {

struct CacheShape {
  size_t heads;     // C = heads * head_dim
  size_t head_dim;  // 1 ... kMaxHeadDim
  size_t capacity;  // positions the cache can hold
};

// New positions `first` ... `first + rows - 1`; those before `first` are in the cache.
struct NewPositions {
  CacheShape shape;
  const float* qkv;  // (rows, 3C): q | k | v, each (heads, head_dim)
  size_t rows;
  size_t first;
};

// Floats of a cache: capacity * 2C and what rounding up to whole blocks and vectors costs. Needs no initial values; the
// same for every target.
size_t attention_cache_size(const CacheShape& shape) noexcept;

// Writes the keys and values of these heads of the new positions. Any alignment, no allocation; first + rows <=
// capacity. Other heads may be written or read by other threads at the same time.
void attention_cache_store(const NewPositions& positions, Range heads, float* cache) noexcept;

size_t attention_decode_scratch(const CacheShape& shape) noexcept;  // floats

// out (rows, C) = softmax(q k^T / sqrt(head_dim), causal) v, the columns of these heads. Their new positions have been
// stored. Any alignment, no allocation; scratch.size() >= attention_decode_scratch(shape), one per thread.
void attention_decode(const NewPositions& positions, Range heads, const float* cache, float* out,
                      std::span<float> scratch) noexcept;

}  // namespace quern::kernels
