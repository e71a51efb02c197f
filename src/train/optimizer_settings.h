// The optimizer and the learning-rate schedule that a run's configuration describes.
#pragma once

#include "config/config.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace quern::train {

quern::Schedule schedule_of(const RunConfig& config);
OptimizerOptions optimizer_options(const RunConfig& config);

}  // namespace quern::train
