#include "replay/shared_sampler.h"

namespace quern::replay {

// Calls draw(number of this call).
template <typename Draw>
void SharedSampler::numbered(Draw draw) {
  const uint64_t call = draws_.fetch_add(1, std::memory_order_relaxed);
  try {
    draw(call);
  } catch (...) {
    uint64_t next = call + 1;
    draws_.compare_exchange_strong(next, call, std::memory_order_relaxed);
    throw;
  }
}

void SharedSampler::sample(const SampleRequest& request, const SampleArrays& out, const Wait& wait) {
  Sampler sampler(*buffer_, seed());
  sampler.admit(request, out, wait);
  numbered([&](uint64_t call) {
    sampler.restore(call);
    sampler.sample_admitted(request, out);
  });
}

void SharedSampler::sample_sequences(const SequenceRequest& request, const SequenceArrays& out, const Wait& wait) {
  admit_sequences(*buffer_, request, out, wait);
  numbered([&](uint64_t call) { replay::sample_sequences(*buffer_, request, out, seed(), call); });
}

void SharedSampler::sample_n_step(const NStepRequest& request, const NStepArrays& out, const Wait& wait) {
  admit_n_step(*buffer_, request, out, wait);
  numbered([&](uint64_t call) { replay::sample_n_step(*buffer_, request, out, seed(), call); });
}

}  // namespace quern::replay
