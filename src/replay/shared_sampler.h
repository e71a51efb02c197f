// A sampler that any number of threads may use.
#pragma once

#include <atomic>
#include <cstdint>

#include "replay/n_step.h"
#include "replay/sampler.h"
#include "replay/seed.h"
#include "replay/sequences.h"

namespace quern::replay {

// The rows a call draws are a function of the seed, the number of the call and the contents of the buffer. Calls are
// numbered in the order in which they begin to draw. Any thread; no lock. The buffer must outlive the sampler.
class SharedSampler {
 public:
  SharedSampler(const ReplayBuffer& buffer, const Seed& seed) : buffer_(&buffer), seed_(seed) {}

  // Sampler::sample(), and the same for sequences.h and n_step.h. A call that throws is not counted, unless another
  // thread has taken the next number meanwhile.
  void sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait = {});
  void sample_sequences(const SequenceRequest& request, const SequenceArrays& out, const Wait& wait = {});
  void sample_n_step(const NStepRequest& request, const NStepArrays& out, const Wait& wait = {});

  uint64_t seed() const noexcept { return seed_.value(); }
  uint64_t draws() const noexcept { return draws_.load(std::memory_order_relaxed); }  // calls so far
  void restore(uint64_t draws) noexcept { draws_.store(draws, std::memory_order_relaxed); }

 private:
  template <typename Draw>
  void numbered(Draw draw);

  const ReplayBuffer* buffer_;
  Seed seed_;
  std::atomic<uint64_t> draws_{0};  // relaxed: only hands out numbers, orders nothing else
};

}  // namespace quern::replay
