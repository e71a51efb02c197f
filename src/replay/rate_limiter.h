// Keeps those who add and those who sample in step.
#pragma once

#include <cstdint>

#include "replay/ring.h"

namespace quern::replay {

// Nobody samples before `minimum` rows were added. After that every row may be sampled `samples_per_insert` times on
// average: with d = inserts * samples_per_insert - samples, adding waits while it would raise d above +`slack` beyond
// minimum * samples_per_insert, and sampling waits while it would lower d below ... - `slack` (as in Reverb's
// SampleToInsertRatio).
struct RateLimit {
  double samples_per_insert = 0;  // 0: adding never waits
  uint64_t minimum = 1;           // rows added before the first sample
  double slack = 0;               // in samples; at least one batch of either side, else both could wait for ever
};

// Two counters in the memory of the buffer, each raised by compare-and-swap, so that no two callers use up the same
// room. Waiting is looking again after a sleep that grows from 20 us to 1 ms: nobody has to wake anyone, so that a
// killed process leaves nobody asleep.
class RateLimiter {
 public:
  RateLimiter(const RateLimit& limit, Counter* inserts, Counter* samples) noexcept;

  // True and counted, or false after `timeout` seconds (0: at once; negative: wait for ever).
  bool admit_inserts(uint64_t rows, double timeout) noexcept;
  bool admit_samples(uint64_t rows, double timeout) noexcept;
};

}  // namespace quern::replay
