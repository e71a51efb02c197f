// Philox 4x32-10: random numbers as a function of a counter, so that any of them can be reproduced, in any order, by
// any thread (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace quern {

using PhiloxBlock = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr uint32_t kPhiloxM0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxM1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9u;  // Weyl increments of the key: golden ratio, sqrt(3) - 1
inline constexpr uint32_t kPhiloxW1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

// Four random words. Pure; any thread.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kPhiloxM0) * counter[0];
    const uint64_t product1 = static_cast<uint64_t>(kPhiloxM1) * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kPhiloxW0, key[1] + kPhiloxW1};
  }
  return counter;
}

// What a random number is used for: the same seed, step and sequence give unrelated numbers for different purposes.
enum class Purpose : uint16_t {
  kInitialise = 1,
  kShuffle = 2,
  kEmbeddingDropout = 3,
  kAttentionDropout = 4,
  kResidualDropout = 5,  // after the attention projection
  kFeedForwardDropout = 6,
  kSample = 7,
  kStories = 8,
  kReplay = 9,
  kAdapterDropout = 10,
  kSelfPlay = 11,       // sequence: the move of a game, step and layer: its number
  kMatch = 12,          // openings and moves of matches, in the same way
  kAugment = 13,        // which symmetry a training row is seen under
  kTestPositions = 14,  // of games
  kTrainedRows = 15,    // which rows of self-play a step trains on
  kOpening = 16,        // of a game of self-play, numbered as in kSelfPlay
};

// A stream of 2^32 blocks of four words, identified by its purpose and position. Cheap to copy.
struct RandomStream {
  uint64_t seed = 0;
  Purpose purpose = Purpose::kInitialise;
  uint16_t layer = 0;
  uint32_t step = 0;
  uint32_t sequence = 0;

  constexpr PhiloxKey key() const { return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}; }
  constexpr PhiloxBlock counter(uint32_t block) const {
    return {block, sequence, step, static_cast<uint32_t>(static_cast<uint32_t>(purpose) << 16 | layer)};
  }
  constexpr PhiloxBlock block(uint32_t index) const { return philox(counter(index), key()); }
};

}  // namespace quern
