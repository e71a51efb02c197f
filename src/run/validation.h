// The loss of a run on held-out text.
#pragma once

#include <cstdint>
#include <memory>

#include "checkpoint/state.h"
#include "config/config.h"
#include "data/evaluation_windows.h"
#include "dataset/dataset.h"
#include "train/trainer.h"

namespace quern::train {

// The maximum number of held-out tokens that a run evaluates, now or earlier in its history.
uint64_t validation_tokens(const RunConfig& config);

class Validation {
 public:
  // `config` and `dataset` must outlive this object.
  Validation(const RunConfig& config, const Dataset& dataset);

  // Sets the losses in `state`: the current one, nullopt if none is due after its step, and the best one. One is due
  // with every checkpoint, so that each contains its loss. Does not affect training.
  void measure(Trainer& trainer, RunState& state) const;

 private:
  const RunConfig& config_;
  std::unique_ptr<data::EvaluationWindows> windows_;  // null if nothing was held out
};

}  // namespace quern::train
