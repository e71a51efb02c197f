// Dropout whose mask is a function of a counter: recomputation draws the same mask, and no mask is stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/philox.h"

namespace quern::kernels {

// Which elements survive, and their scale.
struct Dropout {
  float rate = 0.0f;    // in [0, 1); 0 is the identity
  RandomStream stream;  // one per sequence, layer and purpose

  // Element e survives if its word is at least this.
  uint32_t threshold() const { return static_cast<uint32_t>(static_cast<double>(rate) * 4294967296.0); }
  float scale() const { return 1.0f / (1.0f - rate); }
};

// Element e of the stream uses word (e / 16) % 4 of block 16 * (e / 64) + e % 16: 64 consecutive elements are four
// vectors of 16 virtual lanes, and no word moves between lanes.
constexpr uint32_t dropout_word(const RandomStream& stream, uint64_t e) {
  return stream.block(static_cast<uint32_t>(16 * (e / 64) + e % 16))[(e / 16) % 4];
}

// out[i] = x[i] * scale if element first + i survives, otherwise 0. `first` must be a multiple of 64. `out` may alias
// `x`. The backward pass is the same call on the gradient. Any alignment, any thread, no allocation. n + first < 2^34.
void dropout(const Dropout& options, const float* x, float* out, size_t n, uint64_t first = 0) noexcept;

}  // namespace quern::kernels
