// Divides the sequences of a step into micro-batches, and the threads into teams.
#pragma once

#include <cstddef>

namespace quern::train {

struct StepCut {
  size_t micro_batch_size = 1;  // sequences per micro-batch; the last one of a step may have fewer
  size_t micro_batches = 1;     // per step
  size_t teams = 1;             // at most one per micro-batch
};

// The cut that keeps `threads` threads busiest. For example, 12 sequences of 64 tokens could be three micro-batches of
// 256 tokens, of which two threads would compute two and then one; four of 192 tokens are shared evenly. A micro-batch
// has more than kMicroBatchTokens tokens only if a single sequence does. The cut affects speed only: gradients are
// summed over rows in one order, wherever micro-batches end.
StepCut cut_step(size_t sequences, size_t T, size_t threads);

// The estimated duration of a step, in tokens that one thread would process in that time.
double expected_time(const StepCut& cut, size_t T, size_t threads);

}  // namespace quern::train
