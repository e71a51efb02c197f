// A pseudo-random permutation of 0 ... size - 1 that takes no memory.
#pragma once

#include <cstdint>

#include "core/philox.h"

namespace quern {

// A Feistel network over the smallest 2^(2h) >= size, with Philox as its round function: a bijection for any round
// function. An image outside 0 ... size - 1 is mapped again until it is inside ("cycle walking"), which preserves the
// bijection. The domain is at most four times `size` (for size > 1), so this takes at most four passes on average. Each
// pass has six rounds, because halves of one or two bits mix slowly and extra rounds cost nothing.
class Permutation {
 public:
  static constexpr uint32_t kRounds = 6;

  // size >= 1. A different stream gives a different order; sequences up to stream.sequence + kRounds - 1 are used.
  Permutation(uint64_t size, const RandomStream& stream);

  // The index-th element, index < size. Any thread; no allocation.
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t turn(uint64_t value) const;

  uint64_t size_;
  RandomStream stream_;
  unsigned half_bits_ = 1;
};

}  // namespace quern
