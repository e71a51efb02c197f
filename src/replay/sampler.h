// Draws rows of a replay buffer into the caller's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/buffer.h"
#include "replay/draw.h"

namespace quern::replay {

// One row after another in each array; null for outputs that are not wanted.
struct SampleArrays {
  std::span<std::byte* const> columns;  // as many as the schema has
  uint64_t* ids = nullptr;
  uint64_t* ages = nullptr;  // rows reserved since: 0 for the newest
  float* weights = nullptr;  // importance weights; 1 for rules other than kPrioritised
};

// One reader. The rows it draws are a function of its seed, the number of calls so far and the contents of the buffer.
// One thread; any number of samplers on one buffer. The cost does not depend on how full the buffer is.
class Sampler {
 public:
  // The buffer must outlive the sampler.
  Sampler(const ReplayBuffer& buffer, uint64_t seed);

  // Every returned row was complete, and in the window of the buffer when it was drawn. Waits until the buffer's rate
  // limit admits the rows; TimedOut if that takes longer than `wait`.
  // Error when the buffer is empty (without replacement: has fewer rows than requested), when the buffer does not
  // support the rule, or when the request is invalid; the contents of the arrays are then unspecified, and the call
  // does not count. Allocates nothing.
  void sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait = {});

  // sample() in two parts, for a caller that numbers the calls of several samplers after the wait: admit() checks the
  // request and waits, sample_admitted() draws.
  void admit(const SampleRequest& request, const SampleArrays& out, const Wait& wait = {}) const;
  void sample_admitted(const SampleRequest& request, const SampleArrays& out);

  uint64_t draws() const noexcept { return draws_; }  // calls so far; with the seed, the entire state
  void restore(uint64_t draws) noexcept { draws_ = draws; }

 private:
  struct Sizes {
    size_t value_bytes;
    size_t stored_bytes;
  };

  void check(const SampleRequest& request, const SampleArrays& out) const;
  bool copy(const SampleArrays& out, size_t row, const Drawn& drawn, const Drawn& following) const;

  const ReplayBuffer* buffer_;
  uint64_t seed_;
  uint64_t draws_ = 0;
  std::vector<Sizes> columns_;  // sizes of the columns, cached instead of computed from their shapes
};

}  // namespace quern::replay
