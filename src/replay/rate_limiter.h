// Keeps those who add and those who sample in step.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/mapping_guard.h"
#include "replay/ring.h"

namespace quern::replay {

// Nobody samples before `minimum` rows are in the buffer; rows that are admitted before that are free. From then on
//
//   balance = samples_per_insert * (rows admitted to be added) - (rows admitted to be sampled)
//
//   adding waits    while balance > +slack
//   sampling waits  while balance < -slack
//
// so every row is sampled `samples_per_insert` times on average. This is SampleToInsertRatio of Reverb with
// error_buffer = slack, where its offset of minimum * samples_per_insert stands for the rows that are free here, and
// with one difference: Reverb admits single rows and looks whether one more stays within the buffer, here a call is for
// a batch and looks where the balance is now. So the balance stays within
//
//   -slack - (rows of a sample)  ...  +slack + samples_per_insert * (rows of an add)
//
// and no batch can be too large for the slack: the balance cannot be above +slack and below -slack at once, so one side
// always goes on, whatever the numbers. (Asking for the balance after the call, both sides wait for ever when
// 2 * slack < rows of a sample + samples_per_insert * rows of an add.)
struct RateLimit {
  double samples_per_insert = 0;  // 0: adding never waits, sampling only for the minimum
  uint64_t minimum = 1;           // rows in the buffer before the first sample
  double slack = 0;               // in samples

  // Whether anyone may ever have to wait. Without a limit an empty buffer is an error and nothing to wait for.
  bool applies() const noexcept { return samples_per_insert > 0 || minimum > 1; }

  bool operator==(const RateLimit&) const = default;
};

// How long a call may wait for the rate limit.
struct Wait {
  static constexpr double kForever = -1;

  Wait(double its_seconds = kForever) : seconds(its_seconds) {}
  Wait(double its_seconds, std::function<void()> its_look) : seconds(its_seconds), look(std::move(its_look)) {}

  double seconds;              // 0: try once; negative: as long as it takes
  std::function<void()> look;  // called about every 50 ms of waiting; what it throws ends the wait
};

// The limit did not let a call through in time; nothing was counted.
using TimedOut = TimeoutError;

// Error unless samples_per_insert and slack are finite and not negative and the minimum is from 1 to `capacity`.
void check_rate_limit(const RateLimit& limit, uint64_t capacity);

// Two counters in the memory of the buffer, each raised by compare-and-swap, so that no two callers use up the same
// room. The one of the other side may be behind when it is read; counters only grow, so the caller waits a little
// longer then, and never goes too far. Waiting is looking again after a sleep that grows from 20 us to 1 ms: nobody has
// to wake anyone, so that a killed process leaves nobody asleep; what it was admitted for and did not do stays counted.
// Any thread, any process; no lock.
class RateLimiter {
 public:
  // `published` counts the rows that became whole, ever; the limit passes check_rate_limit. `guard` is that of the
  // memory in which the counters lie; null where nobody can take it away.
  RateLimiter(const RateLimit& limit, const Counter* published, Counter* inserts, Counter* samples,
              const MappingGuard* guard = nullptr) noexcept;

  // True and counted, or false when the time is over. True at once where the memory is lost: nobody will count any
  // more, and the add or sample that follows throws the Error. Error for more than kMaxRows rows, and where waiting
  // could have no end because a counter is damaged: the bounds above hold for every call, so a balance that is further
  // off than a call of kMaxRows rows could bring it was not reached by counting. A smaller damage is not recognised and
  // acts as that many rows, added or sampled, would.
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
  Counter* inserts_;  // admitted once the minimum was there
  Counter* samples_;
  const MappingGuard* guard_;
};

}  // namespace quern::replay
