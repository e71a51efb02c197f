// Training as the public interface and Python's module offer it.
#pragma once

#include <quern/train.h>

#include <functional>

#include "train/config.h"

namespace quern::api {

// The config of a run that starts, or with options.resume of one that continues: the preset's, or that of the run, with
// what `apply` sets. Of the options only out, preset and resume count. Error when the settings do not fit together, or
// are not those that the run was started with.
train::RunConfig run_config(const TrainOptions& options, const std::function<void(train::RunConfig&)>& apply);

// Trains as `config` says. Of the options only out, resume and the callbacks count.
TrainResult run_training(const TrainOptions& options, const train::RunConfig& config);

}  // namespace quern::api
