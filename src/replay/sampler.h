// Drawing rows of a replay buffer into the caller's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/buffer.h"
#include "replay/draw.h"

namespace quern::replay {

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
  // The buffer outlives the sampler.
  Sampler(const ReplayBuffer& buffer, uint64_t seed);

  // Every row that is returned was whole, and in the window of the buffer when it was drawn. Waits until the buffer's
  // rate limit admits the rows, TimedOut when that takes longer than `wait`.
  // Error when the buffer holds no row (without replacement: fewer than asked for), when the rule does not fit it, or
  // when the request makes no sense; the arrays hold anything then, and the call does not count. Allocates nothing.
  void sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait = {});

  // sample() in two parts, for those who number the calls of several samplers once these need wait no more: admit()
  // checks the request and waits, sample_admitted() draws.
  void admit(const SampleRequest& request, const SampleArrays& out, const Wait& wait = {}) const;
  void sample_admitted(const SampleRequest& request, const SampleArrays& out);

  uint64_t draws() const noexcept { return draws_; }  // calls so far; with the seed, all of the state
  void restore(uint64_t draws) noexcept { draws_ = draws; }

 private:
  struct Sizes {
    size_t value_bytes;
    size_t stored_bytes;
  };

  void check(const SampleRequest& request, const SampleArrays& out) const;
  void draw(const SampleRequest& request, const SampleArrays& out);
  bool copy(const SampleArrays& out, size_t row, const Drawn& drawn, const Drawn& following) const;

  const ReplayBuffer* buffer_;
  uint64_t seed_;
  uint64_t draws_ = 0;
  std::vector<Sizes> columns_;  // of the columns, without going through their shapes
};

}  // namespace quern::replay
