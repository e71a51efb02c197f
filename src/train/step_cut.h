// How the sequences of a step are cut into micro-batches, and the threads into teams that take them.
#pragma once

#include <cstddef>

namespace quern::train {

struct StepCut {
  size_t at_once = 1;        // sequences of a micro-batch; the last of a step may have fewer
  size_t micro_batches = 1;  // of a step
  size_t teams = 1;          // at most one a micro-batch
};

// The cut that keeps `threads` threads busiest: 12 sequences of 64 tokens are three micro-batches of 256 tokens, of
// which two threads would do two and then one; as four of 192 tokens they are shared evenly.
// Micro-batches of more than kMicroBatchTokens tokens are made of long sequences only. Nothing but speed depends on
// the cut: gradients are sums over rows in one order, wherever micro-batches end.
StepCut cut_step(size_t sequences, size_t T, size_t threads);

// How long a step takes by that reckoning, in tokens that one thread would do meanwhile.
double expected_time(const StepCut& cut, size_t T, size_t threads);

}  // namespace quern::train
