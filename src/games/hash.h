// Hashes of positions.
#pragma once

#include <cstdint>

namespace quern::games {

// A permutation of the 64-bit numbers that spreads every bit over all bits: the finalizer of SplitMix64 (Steele, Lea,
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Different numbers have different results.
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// The n-th of a sequence of unrelated numbers.
constexpr uint64_t nth_key(uint64_t n) { return mix((n + 1) * 0x9E3779B97F4A7C15); }

}  // namespace quern::games
