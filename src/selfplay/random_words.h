// The random numbers of self-play: functions of (seed, game, move) and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/philox.h"

namespace quern::selfplay {

inline constexpr uint64_t kMaxGames = uint64_t{1} << 48;  // what a stream can number

// The stream of a move of a game below kMaxGames. Unrelated for any two (purpose, seed, game, move).
constexpr RandomStream move_stream(Purpose purpose, uint64_t seed, uint64_t game, uint32_t move) {
  return {seed, purpose, static_cast<uint16_t>(game >> 32), static_cast<uint32_t>(game), move};
}

// Reads a stream word by word.
class RandomWords {
 public:
  explicit RandomWords(const RandomStream& stream, uint32_t first_block = 0) noexcept
      : stream_(stream), next_block_(first_block) {}

  uint32_t word() noexcept {
    if (used_ == block_.size()) {
      block_ = stream_.block(next_block_++);
      used_ = 0;
    }
    return block_[used_++];
  }

  // In [0, 1), a multiple of 2^-52. Two words.
  double uniform() noexcept {
    const uint64_t high = word();
    return static_cast<double>((high << 32 | word()) >> 12) * 0x1p-52;
  }

  // Below `n`, which must not be 0. One word: the probabilities of two numbers differ by n / 2^32 at most.
  uint32_t below(uint32_t n) noexcept { return static_cast<uint32_t>((uint64_t{word()} * n) >> 32); }

 private:
  RandomStream stream_;
  uint32_t next_block_;
  PhiloxBlock block_{};
  size_t used_ = 4;
};

}  // namespace quern::selfplay
