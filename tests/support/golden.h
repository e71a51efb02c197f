// The formulas of scripts/make_golden.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::test {

// In [-1, 1), from a hash of the stream and the index.
inline double unit(size_t stream, size_t i) {
  auto h = static_cast<uint32_t>(stream * 0x9E3779B9u + i * 0x85EBCA6Bu);
  h ^= h >> 16;
  h *= 0x7FEB352Du;
  h ^= h >> 15;
  h *= 0x846CA68Bu;
  h ^= h >> 16;
  return static_cast<double>(h) * 0x1p-31 - 1.0;
}

}  // namespace quern::test
