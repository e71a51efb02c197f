// Which rows a call of a sampler gets.
#pragma once

#include <cstdint>
#include <optional>

#include "core/permutation.h"
#include "core/philox.h"
#include "replay/buffer.h"

namespace quern::replay {

enum class Rule {
  kUniform,             // with replacement
  kWithoutReplacement,  // uniform, no row twice in one call
  kPrioritised,         // in proportion to priority ^ alpha
  kRecent,              // a row's chance halves with every `half_life` rows of age
};

struct SampleRequest {
  size_t rows = 0;
  Rule rule = Rule::kUniform;
  double half_life = 0;  // of kRecent, in rows
  double beta = 0.4;     // of kPrioritised: importance weights are (size * chance) ^ -beta, divided by the largest of
                         // the call
};

// Random numbers of one call: a function of the seed and of the number of the call.
class Numbers {
 public:
  Numbers(uint64_t seed, uint64_t call) noexcept;

  uint64_t next() noexcept;                 // 64 random bits
  uint64_t below(uint64_t bound) noexcept;  // 0 ... bound - 1, each exactly as likely; bound >= 1
  double fraction() noexcept;               // from [0, 1), a multiple of 2^-53
  Permutation order(uint64_t size) const;   // of 0 ... size - 1; always the same of this call

 private:
  RandomStream stream_;
  PhiloxBlock block_{};
  uint32_t used_ = 0;  // halves of blocks
};

struct Drawn {
  uint64_t id = kNoRow;  // kNoRow: the draw fell on nothing; draw again
  uint64_t age = 0;
  float chance = 1;  // of kPrioritised: of this row in this draw
};

// Draws ids in the window. Rows that are not whole (being written, or lost with a killed process) may be drawn: who
// cannot read one draws again, so that of the readable rows each has the chance that its rule gives it.
// One thread; no allocation unless it throws. O(1), kPrioritised O(log8 capacity).
class Drawer {
 public:
  // Error when the buffer has no whole row, or without replacement fewer than asked for.
  Drawer(const ReplayBuffer& buffer, const SampleRequest& request, uint64_t seed, uint64_t call);

  Drawn next();

  // Another one instead of a row that could not be read, for the tries-th time in a row. Error when there is none, or
  // when it has been far too often.
  Drawn again(uint64_t tries);

  // Follows the window of the buffer, which moves when rows are added; not without replacement, where the window is
  // that of the beginning. Error when no row is whole.
  void look();

 private:
  Drawn row(uint64_t id) const noexcept { return {.id = id, .age = end_ - 1 - id}; }
  uint64_t size() const noexcept { return newest_ - begin_; }
  uint64_t recent_age() noexcept;
  Drawn by_priority();

  const ReplayBuffer& buffer_;
  SampleRequest request_;
  Numbers numbers_;
  uint64_t begin_ = 0, newest_ = 0;   // ids begin_ ... newest_ - 1 are drawn; newest_ - 1 was whole when we looked
  uint64_t end_ = 0;                  // of the window; beyond newest_ nothing is whole yet
  std::optional<Permutation> order_;  // without replacement
  uint64_t taken_ = 0;                // of the order
};

}  // namespace quern::replay
