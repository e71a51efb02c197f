// What a step read and wrote, for diagnosing it.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/state.h"
#include "config/config.h"
#include "data/batch_reader.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "train/plan.h"

namespace quern::train {

// The factor of a step's gradient: the loss is the mean over the targets that count. A step without any changes
// nothing.
inline float scale_of(uint64_t counted_targets) {
  return counted_targets == 0 ? 0.0f : static_cast<float>(1 / static_cast<double>(counted_targets));
}

// Valid between two steps. The members below `gradient` are scratch memory, which the next step overwrites: diagnosis
// may repeat passes in it.
struct StepContext {
  const RunConfig& config;
  const Plan& plan;
  const nn::Model& model;
  const data::BatchSource& batches;
  const RunState& before;           // the state before the last step
  std::span<const double> losses;   // of the last step's sequences, summed over their tokens; each by parts
  bool measured;                    // whether `gradient` has statistics
  std::span<const Change> changes;  // of the weights by the last step, per segment; empty if not measured or updated
  nn::Gradient& gradient;           // of the last step
  nn::Workspace& work;              // of one team
  uint32_t& turns;                  // that `gradient` has taken so far; a pass takes the next one
};

}  // namespace quern::train
