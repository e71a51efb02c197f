// A sampler that any number of threads may use.
#pragma once

#include <atomic>
#include <cstdint>

#include "replay/sampler.h"
#include "replay/seed.h"

namespace quern::replay {

// The rows a call draws are a function of the seed, the number of the call and the contents of the buffer. Calls are
// numbered in the order in which they begin to draw. Any thread; no lock. The buffer must outlive the sampler.
class SharedSampler {
 public:
  SharedSampler(const ReplayBuffer& buffer, const Seed& seed) : buffer_(&buffer), seed_(seed) {}

  // Sampler::sample(). A call that throws is not counted, unless another thread has taken the next number meanwhile.
  void sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait = {});

  uint64_t seed() const noexcept { return seed_.value(); }
  uint64_t draws() const noexcept { return draws_.load(std::memory_order_relaxed); }  // calls so far
  void restore(uint64_t draws) noexcept { draws_.store(draws, std::memory_order_relaxed); }

 private:
  const ReplayBuffer* buffer_;
  Seed seed_;
  std::atomic<uint64_t> draws_{0};  // relaxed: only hands out numbers, orders nothing else
};

}  // namespace quern::replay
