// The unit of work: a few sequences that one worker takes through forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/columns.h"

namespace quern::nn {

// The position at which a micro-batch's gradient is added.
struct Turn {
  uint32_t number = 0;  // counted from the first micro-batch ever added to the gradient; wraps around
  bool first = true;    // of its lane: overwrites earlier values
  bool last = true;     // of its lane: its sums are those of the lane
  uint32_t lane = 0;    // of its step
};

struct MicroBatch {
  ColumnRefs columns = {};  // what the model reads (Model::columns()); the first sequence of each
  size_t sequences = 0;
  size_t T = 0;
  size_t first_position = 0;  // of every sequence; positions before it are in a cache
  // Identifies the dropout masks of the first sequence; those of the others follow it.
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t first_sequence = 0;  // counted over the entire step, including accumulation rounds
  Turn turn = {};
};

// Approximate number of tokens in a micro-batch: enough rows for GEMM, few enough for the caches.
inline constexpr size_t kMicroBatchTokens = 256;

inline constexpr size_t sequences_per_micro_batch(size_t T) {
  return T >= kMicroBatchTokens ? 1 : kMicroBatchTokens / T;
}

}  // namespace quern::nn
