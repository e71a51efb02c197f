// Remembers evaluations: openings, and positions that several games or searches reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "selfplay/wdl.h"

namespace quern::selfplay {

struct CachedEvaluation {
  std::span<const float> priors;  // of the legal moves; valid until the next put()
  Wdl value;
};

// An evaluation is a pure function of position and weights, so the cache changes how often the network is asked, and no
// result. Two positions are taken for one if their 64-bit keys and their numbers of legal moves are equal: with 10^6
// entries, a chance of 5e-14 for each new position.
//
// Bounded: a table in sets of four entries, and a ring with the priors of legal moves. A new entry replaces the oldest
// of its set; the ring overwrites the oldest priors. One thread; no allocation after the constructor.
class EvaluationCache {
 public:
  // For about this many positions, rounded up to a power of two; 0 for a cache that remembers nothing. `moves` is the
  // number of legal moves to reserve space for, on average.
  EvaluationCache(size_t positions, size_t moves);

  // What such a cache takes.
  static size_t bytes(size_t positions, size_t moves) noexcept;

  bool enabled() const noexcept { return !entries_.empty(); }
  size_t bytes() const noexcept;

  // The key of a position (its hash) under the weights of this version.
  static uint64_t key(uint64_t hash, uint64_t version) noexcept;

  // Whether there is an evaluation with this number of legal moves, and it.
  bool find(uint64_t key, size_t moves, CachedEvaluation& found) const noexcept;
  void put(uint64_t key, std::span<const float> priors, const Wdl& value) noexcept;

 private:
  static constexpr size_t kWays = 4;
  struct Entry {
    uint64_t key = 0;
    uint64_t start = 0;  // of its priors, counted over all laps of the ring
    uint32_t moves = 0;  // 0 for no entry
    Wdl value = {};
  };

  bool holds(const Entry& entry, uint64_t key, size_t moves) const noexcept;
  std::span<Entry> set_of(uint64_t key) noexcept;

  std::vector<Entry> entries_;
  std::vector<float> priors_;
  uint64_t written_ = 0;  // floats, over all laps
};

}  // namespace quern::selfplay
