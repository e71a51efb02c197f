// Options of a replay buffer, in addition to its schema.
#pragma once

#include <cstdint>

#include "replay/rate_limiter.h"

namespace quern::replay {

struct BufferOptions {
  uint64_t capacity = 0;     // rows
  bool prioritised = false;  // stores a priority for every row
  double alpha = 0.6;        // of priorities: a row is drawn in proportion to priority ^ alpha
  RateLimit limit = {};
  bool prefault = true;  // touch all memory (not files) on create and attach, so that add() never takes a page fault
};

}  // namespace quern::replay
