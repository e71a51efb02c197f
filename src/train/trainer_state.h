// The state of a trainer.
#pragma once

#include <cstdint>

#include "data/batch_reader.h"
#include "optim/loss_trend.h"

namespace quern::train {

// Everything besides weights and moments that the next step depends on.
struct TrainerState {
  uint64_t steps = 0;                  // completed
  uint64_t left_out = 0;               // steps whose data was skipped: the next step reads that of steps + left_out
  data::StreamPosition position = {};  // start of the next step, for sources that need it
  uint64_t updates = 0;                // completed steps whose update was not skipped
  LossTrend losses = {};
};

}  // namespace quern::train
