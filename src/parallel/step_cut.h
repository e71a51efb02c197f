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

// The lanes of a step, and which of them this process computes.
struct LaneShare {
  size_t lanes = 1;
  size_t rank = 0, ranks = 1;  // at most as many as lanes

  Range of(size_t any_rank) const { return {any_rank * lanes / ranks, (any_rank + 1) * lanes / ranks}; }
  Range own() const { return of(rank); }
};

struct StepCut {
  size_t sequences = 1;         // per step, of all ranks
  LaneShare share = {};         // at most one lane per sequence; a micro-batch is part of one
  size_t micro_batch_size = 1;  // sequences per micro-batch; the last one of a lane may have fewer
  size_t micro_batches = 1;     // per step, of this rank
  size_t teams = 1;             // at most one per micro-batch

  // The sequences of a lane: lanes differ by at most one.
  Range lane(size_t index) const { return {index * sequences / share.lanes, (index + 1) * sequences / share.lanes}; }
  // The sequences of a rank.
  Range sequences_of(size_t rank) const { return {lane(share.of(rank).begin).begin, lane(share.of(rank).end - 1).end}; }
  // The same with the micro-batches of all ranks.
  StepCut whole() const;
  // This rank's micro-batches, in the order of their sequences.
  std::vector<StepPart> parts() const;
  // The number of the micro-batch with this sequence, which must be one of this rank's.
  size_t part_of(size_t sequence) const;
};

// The cut that keeps `threads` threads busiest. For example, 12 sequences of 64 tokens could be three micro-batches of
// 256 tokens, of which two threads would compute two and then one; four of 192 tokens are shared evenly. A micro-batch
// has more than kMicroBatchTokens tokens only if a single sequence does. The cut affects speed only, except for the
// number of lanes: the gradient of a lane is summed over rows in one order, wherever micro-batches end.
StepCut cut_step(size_t sequences, size_t T, size_t threads, const LaneShare& share = {});

// The estimated duration of a step, in tokens that one thread would process in that time.
double expected_time(const StepCut& cut, size_t T, size_t threads);

}  // namespace quern::train
