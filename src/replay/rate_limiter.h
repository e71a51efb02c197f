// Limits the ratio of sampled to added rows.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/mapping_guard.h"
#include "replay/ring.h"

namespace quern::replay {

// Sampling waits until `minimum` rows are in the buffer; rows admitted before that are not counted. From then on
//
// clang-format off
//   balance = samples_per_insert * (rows admitted to be added) - (rows admitted to be sampled)
//
//   adding waits    while balance > +slack
//   sampling waits  while balance < -slack
// clang-format on
//
// so every row is sampled `samples_per_insert` times on average. This is Reverb's SampleToInsertRatio with
// error_buffer = slack; its offset of minimum * samples_per_insert corresponds to the rows that are not counted here.
// There is one difference: Reverb admits single rows and checks whether one more stays within the error buffer. Here a
// call is for a batch and checks the current balance. So the balance stays within
//
//   -slack - (rows of a sample)  ...  +slack + samples_per_insert * (rows of an add)
//
// and no batch can be too large for the slack: the balance cannot be both above +slack and below -slack, so one side
// can always proceed, whatever the numbers. (If the balance after the call were checked, both sides would wait forever
// when 2 * slack < rows of a sample + samples_per_insert * rows of an add.)
struct RateLimit {
  double samples_per_insert = 0;  // 0: adding never waits, sampling only for the minimum
  uint64_t minimum = 1;           // rows in the buffer before the first sample
  double slack = 0;               // in samples

  // Whether a call may ever have to wait. Without a limit, sampling an empty buffer is an error instead of a wait.
  bool applies() const noexcept { return samples_per_insert > 0 || minimum > 1; }

  bool operator==(const RateLimit&) const = default;
};

// How long a call may wait for the rate limit.
struct Wait {
  static constexpr double kForever = -1;

  Wait(double its_seconds = kForever) : seconds(its_seconds) {}
  Wait(double its_seconds, std::function<void()> its_look) : seconds(its_seconds), look(std::move(its_look)) {}

  double seconds;              // 0: try once; negative: no timeout
  std::function<void()> look;  // called about every 50 ms while waiting; an exception ends the wait
};

// The limit did not admit a call in time; nothing was counted.
using TimedOut = TimeoutError;

// Error unless samples_per_insert and slack are finite and not negative and the minimum is from 1 to `capacity`.
void check_rate_limit(const RateLimit& limit, uint64_t capacity);

// Two counters in the memory of the buffer, each increased by compare-and-swap, so that no two callers are admitted for
// the same budget. The counter of the other side may be stale when it is read; counters only grow, so the caller may
// wait a little longer, but never exceeds the limit. A waiting caller polls, with a sleep that grows from 20 us to 1
// ms: no wake-up is needed, so a killed process leaves no other process asleep; rows that it was admitted for but did
// not process stay counted. Any thread, any process; no lock.
class RateLimiter {
 public:
  // `published` counts all rows ever completed; the limit must pass check_rate_limit(). `guard` is that of the memory
  // with the counters; null if that memory cannot be truncated.
  RateLimiter(const RateLimit& limit, const Counter* published, Counter* inserts, Counter* samples,
              const MappingGuard* guard = nullptr) noexcept;

  // True and counted, or false after the timeout. Returns true immediately if the memory is lost: no process will count
  // any more, and the add or sample that follows throws the Error. Error for more than kMaxRows rows, and when a wait
  // might never end because a counter is damaged: the bounds above hold for every call, so a balance further off than a
  // call of kMaxRows rows could cause was not reached by counting. Smaller damage is not detected and has the effect of
  // that many added or sampled rows.
  bool admit_inserts(uint64_t rows, const Wait& wait);
  bool admit_samples(uint64_t rows, const Wait& wait);

  static constexpr uint64_t kMaxRows = uint64_t{1} << 32;

  double balance() const noexcept;

 private:
  bool try_inserts(uint64_t rows) noexcept;
  bool try_samples(uint64_t rows) noexcept;
  bool filled() const noexcept;
  void expect_possible() const;
  bool lost() const noexcept { return guard_ != nullptr && guard_->lost(); }
  double balance(uint64_t inserts, uint64_t samples) const noexcept;

  RateLimit limit_;
  const Counter* published_;
  Counter* inserts_;  // admitted since the minimum was reached
  Counter* samples_;
  const MappingGuard* guard_;
};

}  // namespace quern::replay
