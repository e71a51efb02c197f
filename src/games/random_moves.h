// Random choices that depend on nothing but a seed and a number.
#pragma once

#include <cstdint>

#include "core/philox.h"

namespace quern::games {

// The choices of one random game. Games of one seed with different numbers are unrelated.
class RandomMoves {
 public:
  RandomMoves(uint64_t seed, uint32_t game)
      : stream_{.seed = seed, .purpose = Purpose::kTestPositions, .sequence = game} {}

  // 0 <= result < limit, where limit > 0. The bias, limit / 2^32, does not matter here.
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(uint64_t{stream_.block(next_++)[0]} * limit >> 32); }

 private:
  RandomStream stream_;
  uint32_t next_ = 0;
};

}  // namespace quern::games
