// Memory layout of the key-value cache, and the scratch for decoding. Not part of the contract.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/attention_decode.h"
#include "kernels/attention_scratch.h"

namespace quern::kernels {

inline constexpr size_t kCacheKeys = 128;  // keys per block: eight AVX-512 vectors, which a row holds in registers

// Of one head of keys and values.
inline size_t cached_head_size(const CacheShape& shape) {
  return round_up(shape.capacity, kCacheKeys) * shape.head_dim + shape.capacity * round_up(shape.head_dim, kLine);
}

// One head's part; Float is float or const float. Keys are transposed, so that a vector of scores is summed over k
// without a fold, and stored in blocks, so that a block is read sequentially.
template <typename Float>
struct CachedHead {
  CachedHead(const CacheShape& shape, size_t head, Float* cache)
      : head_dim(shape.head_dim),
        width(round_up(shape.head_dim, kLine)),
        keys(cache + head * cached_head_size(shape)),
        values(keys + round_up(shape.capacity, kCacheKeys) * head_dim) {}

  // Reads load full vectors, including the rest of a row of values, but its results are not used.
  void store(size_t position, const float* key, const float* value) const {
    float* column = keys + position / kCacheKeys * kCacheKeys * head_dim + position % kCacheKeys;
    for (size_t k = 0; k < head_dim; ++k) column[k * kCacheKeys] = key[k];
    std::copy_n(value, head_dim, values + position * width);
  }

  size_t head_dim, width;
  Float* keys;    // (blocks, head_dim, kCacheKeys)
  Float* values;  // (capacity, width)
};

struct DecodeScratch {
  // Queries at a time, of several positions or of the heads that share keys. A block of keys and values is read once
  // for all of them, and their scores for 8,192 positions are 800 KB. Tiles have 6 or 8 rows.
  static constexpr size_t kQueries = 24;

  DecodeScratch(const CacheShape& shape, Carver& carver)
      : score_stride(round_up(shape.capacity, kLine) + kLine),
        width(round_up(shape.head_dim, kLine)),
        scores(carver.take(kQueries * score_stride)),
        out(carver.take(kQueries * width)) {}

  size_t score_stride, width;
  float* scores;  // (kQueries, capacity), each row followed by at least a line for zeros
  float* out;     // (kQueries, width), not yet divided by the sums
};

}  // namespace quern::kernels
