// The states of an optimizer that several ranks have together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/aligned_buffer.h"
#include "nn/parameter_table.h"
#include "optim/optimizer.h"
#include "run/run_ranks.h"
#include "train/rank_exchange.h"

namespace quern::train {

// Every rank has the states of its segments. Rank 0 can save all of them: it receives one segment at a time.
class RankedStates {
 public:
  // The arguments must outlive this object.
  RankedStates(const RunRanks& ranks, const nn::ParameterTable& table, Optimizer& optimizer);

  // To save from or load into. With several ranks, rank 0 may read each of them once, in order, while the others call
  // send().
  const std::vector<checkpoint::TensorRef>& refs() const { return refs_; }
  // Only on rank 0, after that: receives what was not read because of a failure, and begins again.
  void finish();
  // Not on rank 0: sends the states of this rank's segments.
  void send();
  // Forgets the states of all segments that belong to others, and releases their memory.
  void release_foreign();

 private:
  std::span<float> values_of(const OptimizerState& state, const nn::Segment& segment) const;
  std::span<const std::byte> read(size_t state, size_t parameter, size_t at);
  void receive(size_t segment);

  const RunRanks& ranks_;
  const nn::ParameterTable& table_;
  Optimizer& optimizer_;
  Ownership owners_;
  std::vector<checkpoint::TensorRef> refs_;
  // Only on rank 0:
  AlignedBuffer<float> received_;  // a segment
  std::vector<size_t> foreign_;    // the segments that others send, in order
  size_t next_ = 0;                // of these
};

}  // namespace quern::train
