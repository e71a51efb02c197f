// Drawing rows of a replay buffer into the caller's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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
  double beta =
      0.4;  // of kPrioritised: importance weights are (size * chance) ^ -beta, divided by the largest of the call
};

// One row after another in each array; null for what is not wanted.
struct SampleArrays {
  std::span<std::byte* const> columns;  // as many as the schema has
  uint64_t* ids = nullptr;
  uint64_t* ages = nullptr;  // rows reserved since: 0 for the newest
  float* weights = nullptr;  // importance weights; 1 for other rules than kPrioritised
};

// One reader: what it draws is a function of its seed, of the calls so far and of what lies in the buffer. One thread;
// any number of samplers on one buffer. The cost does not depend on how full the buffer is.
class Sampler {
 public:
  Sampler(const ReplayBuffer& buffer, uint64_t seed);

  // Error when the buffer holds no row (without replacement: fewer than asked for), when the rule does not fit it, or
  // when the request makes no sense. Allocates nothing.
  void sample(const SampleRequest& request, const SampleArrays& out);

  uint64_t draws() const noexcept;  // calls so far; with the seed, all of the state
  void restore(uint64_t draws) noexcept;
};

}  // namespace quern::replay
