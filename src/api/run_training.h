// Training for the public interface and the Python module.
#pragma once

#include <quern/train.h>

#include <functional>

#include "config/config.h"

namespace quern::api {

// The config of a new run, starting from the preset or from the settings of the run in init_from, or with
// options.resume that of the existing run; then `apply` is called on it. Uses only out, preset, init_from and resume of
// the options. Error when the settings are inconsistent.
train::RunConfig run_config(const TrainOptions& options, const std::function<void(train::RunConfig&)>& apply);

// `config` after `apply` was called on it: data replaced as a whole, min_rate below the rate, paths absolute. Error
// when the settings are inconsistent.
train::RunConfig completed(train::RunConfig config, const std::function<void(train::RunConfig&)>& apply);

// Trains with `config`. Uses only out, resume and the callbacks of the options.
TrainResult run_training(const TrainOptions& options, const train::RunConfig& config);

}  // namespace quern::api
