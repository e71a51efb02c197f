// Divides the sequences of a step into micro-batches, and the threads into teams.
#pragma once

#include <cstddef>
#include <vector>

#include "core/range.h"

namespace quern::train {

// A micro-batch of a step.
struct StepPart {
  Range sequences;
  size_t lane = 0;
  bool first = true, last = true;  // of its lane
};

struct StepCut {
  size_t sequences = 1;         // per step
  size_t lanes = 1;             // at most one per sequence; a micro-batch is part of one
  size_t micro_batch_size = 1;  // sequences per micro-batch; the last one of a lane may have fewer
  size_t micro_batches = 1;     // per step
  size_t teams = 1;             // at most one per micro-batch

  // The sequences of a lane: lanes differ by at most one.
  Range lane(size_t index) const { return {index * sequences / lanes, (index + 1) * sequences / lanes}; }
  // All micro-batches, in the order of their sequences.
  std::vector<StepPart> parts() const;
  // The number of the micro-batch with this sequence, which is below `sequences`.
  size_t part_of(size_t sequence) const;
};

// The cut that keeps `threads` threads busiest. For example, 12 sequences of 64 tokens could be three micro-batches of
// 256 tokens, of which two threads would compute two and then one; four of 192 tokens are shared evenly. A micro-batch
// has more than kMicroBatchTokens tokens only if a single sequence does. The cut affects speed only, except for the
// number of lanes: the gradient of a lane is summed over rows in one order, wherever micro-batches end.
StepCut cut_step(size_t sequences, size_t T, size_t threads, size_t lanes = 1);

// The estimated duration of a step, in tokens that one thread would process in that time.
double expected_time(const StepCut& cut, size_t T, size_t threads);

}  // namespace quern::train
