// What can be said about a buffer in use.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "replay/buffer.h"

namespace quern::replay {

struct BufferStats {
  uint64_t size = 0, capacity = 0;
  double fill = 0;                  // size / capacity
  uint64_t added = 0, sampled = 0;  // rows, by all processes, since the buffer was created
  double seconds = 0;               // since the last call for this meter; for the first, since it was made
  double added_per_second = 0, sampled_per_second = 0;  // in these seconds
  uint64_t oldest_age = 0;                              // of a row: rows added since
  double mean_age = 0;
  uint64_t missing = 0;  // ids among the newest that have no row: being written, or lost with a process
  struct Priorities {
    double min = 0, mean = 0, max = 0;
  };
  std::optional<Priorities> priorities = {};  // of a prioritised buffer with rows
  std::optional<double> balance = {};         // of a buffer with a limit of samples per insert (see RateLimiter)
  std::optional<uint64_t> episodes = {};      // begun, in a buffer with episodes
  uint64_t bytes = 0;
  size_t handles = 1;                      // buffer objects that are open on it, in all processes
  std::optional<double> age_seconds = {};  // since the buffer was created
};

// Remembers when it was last asked. Any thread. The buffer must outlive it.
class StatsMeter {
 public:
  explicit StatsMeter(const ReplayBuffer& buffer);

  // Time in proportion to the rows in the buffer: about 3 ms per million, 10 with priorities. Takes no lock that adding
  // and sampling take; rows may come and go meanwhile.
  BufferStats read();

 private:
  struct Moment {
    double time;
    uint64_t added, sampled;
  };
  Moment now() const;

  const ReplayBuffer* buffer_;
  std::mutex mutex_;  // of last_
  Moment last_;
};

}  // namespace quern::replay
