// The reads and writes of LayerNorm and RMS norm without their arithmetic ("copy" in the results): their limit.
#pragma once

#include <cstddef>

namespace quern::bench {

// Arrays are aligned to 64 bytes and n is a multiple of 64. `bytes` is the size of a saved element: 4, 2, or 0 for
// none.

// Reads x, writes out and `saved`.
void traffic_norm_forward(const float* x, float* out, char* saved, size_t bytes, size_t n) noexcept;
// Reads `saved`, dout and dx, writes dx.
void traffic_norm_backward(const char* saved, size_t bytes, const float* dout, float* dx, size_t n) noexcept;

}  // namespace quern::bench
