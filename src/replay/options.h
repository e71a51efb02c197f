// What a replay buffer is made with, beside its schema.
#pragma once

#include <cstdint>

#include "replay/rate_limiter.h"

namespace quern::replay {

struct BufferOptions {
  uint64_t capacity = 0;     // rows
  bool prioritised = false;  // keeps a priority for every row
  double alpha = 0.6;        // of priorities: a row is drawn in proportion to priority ^ alpha
  RateLimit limit = {};
  bool prefault = true;  // touch all memory (not a file) when made or attached to, so that no add pays for a page
};

}  // namespace quern::replay
