// Selects the rows of a call of a sampler.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/permutation.h"
#include "core/philox.h"
#include "replay/buffer.h"

namespace quern::replay {

enum class Rule {
  kUniform,             // with replacement
  kWithoutReplacement,  // uniform, no row twice in one call
  kPrioritised,         // in proportion to priority ^ alpha
  kRecent,              // a row's probability halves with every `half_life` rows of age
};

struct SampleRequest {
  size_t rows = 0;
  Rule rule = Rule::kUniform;
  double half_life = 0;  // of kRecent, in rows
  double beta = 0.4;     // of kPrioritised: importance weights are (size * probability) ^ -beta, divided by the largest
                         // of the call
};

// Error unless the buffer can be sampled in this way.
void check_request(const ReplayBuffer& buffer, const SampleRequest& request);

// Waits until the buffer's rate limit admits a call that reads `rows` rows; TimedOut if that takes longer than `wait`.
// Rejects impossible requests before they are counted.
void admit_samples(const ReplayBuffer& buffer, const SampleRequest& request, uint64_t rows, const Wait& wait);

// Random numbers of one call: a function of the seed and the number of the call.
class Numbers {
 public:
  Numbers(uint64_t seed, uint64_t call) noexcept;

  uint64_t next() noexcept;                 // 64 random bits
  uint64_t below(uint64_t bound) noexcept;  // 0 ... bound - 1, exactly uniform; bound >= 1
  double fraction() noexcept;               // from [0, 1), a multiple of 2^-53
  // Of 0 ... size - 1, always the same within a call. A different number gives a different order.
  Permutation order(uint64_t size, uint16_t number = 0) const;

 private:
  RandomStream stream_;
  PhiloxBlock block_{};
  uint32_t used_ = 0;  // halves of blocks
};

struct Drawn {
  uint64_t id = kNoRow;  // kNoRow: the draw hit no row; draw again
  uint64_t age = 0;
  float chance = 1;  // of kPrioritised: the probability of this row in this draw
};

// Draws ids in the window. Incomplete rows (being written, or lost with a killed process) may be drawn: a caller that
// cannot read a row draws again, so that each readable row has the probability that the rule gives it.
// One thread; no allocation unless it throws. O(1), kPrioritised O(log8 capacity).
class Drawer {
 public:
  // `wanted` says in messages what the caller needs from a row. Error when the buffer has no complete row or, without
  // replacement, fewer than requested.
  Drawer(const ReplayBuffer& buffer, const SampleRequest& request, uint64_t seed, uint64_t call,
         std::string_view wanted = "a row that can be read");

  Drawn next();

  // A replacement for a row that could not be read, for the tries-th consecutive time. Error when there is none, or
  // after far too many tries.
  Drawn again(uint64_t tries);

  // Updates to the current window of the buffer, which moves when rows are added. Without replacement the window stays
  // that of the start of the call as long as it has rows that were not drawn; then the rows added since are drawn too,
  // in place of those that were overwritten. Error when no row is complete.
  void look();

 private:
  Drawn row(uint64_t id) const noexcept { return {.id = id, .age = end_ - 1 - id}; }
  uint64_t size() const noexcept { return newest_ - begin_; }
  uint64_t recent_age() noexcept;
  Drawn by_priority();
  // Sets begin_, newest_ and end_ to the rows of the window from id `first` on. False if none of them is complete;
  // waits up to a second for rows that are being written.
  bool find_rows(uint64_t first = 0);
  void set_order();
  void continue_with_new_rows();

  const ReplayBuffer& buffer_;
  SampleRequest request_;
  Numbers numbers_;
  std::string_view wanted_;
  uint64_t begin_ = 0, newest_ = 0;  // ids begin_ ... newest_ - 1 are drawn; newest_ - 1 was complete when last checked
  uint64_t end_ = 0;                 // of the window; no row from newest_ on is complete yet
  // Without replacement:
  std::optional<Permutation> order_;  // of the ids begin_ ... newest_ - 1
  uint16_t orders_ = 0;               // so far
  uint64_t taken_ = 0;                // ids of the order
  uint64_t tried_ = 0;                // ids in all orders
};

}  // namespace quern::replay
