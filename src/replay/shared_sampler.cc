#include "replay/shared_sampler.h"

namespace quern::replay {

void SharedSampler::sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait) {
  Sampler sampler(*buffer_, seed());
  sampler.admit(request, out, wait);
  const uint64_t call = draws_.fetch_add(1, std::memory_order_relaxed);
  sampler.restore(call);
  try {
    sampler.sample_admitted(request, out);
  } catch (...) {
    uint64_t next = call + 1;
    draws_.compare_exchange_strong(next, call, std::memory_order_relaxed);
    throw;
  }
}

}  // namespace quern::replay
