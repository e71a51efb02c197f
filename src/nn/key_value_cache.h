// The keys and values of earlier positions, from which attention continues a sequence.
#pragma once

#include <span>
#include <vector>

#include "kernels/attention_decode.h"

namespace quern::nn {

// One buffer of attention_cache_size(shape) per block. Owned by a decoder.
struct KeyValueCache {
  kernels::CacheShape shape = {};
  std::vector<std::span<float>> blocks;
};

}  // namespace quern::nn
