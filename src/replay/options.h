// Options of a replay buffer, in addition to its schema.
#pragma once

#include <cstdint>
#include <string>

#include "replay/rate_limiter.h"

namespace quern::replay {

struct BufferOptions {
  uint64_t capacity = 0;     // rows
  bool prioritised = false;  // stores a priority for every row
  double alpha = 0.6;        // of priorities: a row is drawn in proportion to priority ^ alpha
  RateLimit limit = {};
  bool prefault = true;  // touch all memory (not files) on create and attach, so that add() never takes a page fault
  // The columns, bool or uint8 and one number per row, that mark the last row of an episode: it ended in a terminal
  // state, or it was cut off. With either of them the buffer stores the episode of every row (episodes.h).
  std::string terminal = {};
  std::string truncated = {};

  bool has_episodes() const noexcept { return !terminal.empty() || !truncated.empty(); }
};

}  // namespace quern::replay
