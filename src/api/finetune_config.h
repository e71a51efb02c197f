// The settings of fine-tuning, for the public interface and the Python module.
#pragma once

#include <quern/finetune.h>

#include <functional>

#include "config/config.h"

namespace quern::api {

// The config of a new run that fine-tunes options.base, which is imported first if it is a model of another program, or
// with options.resume that of the existing run; then `apply` is called on it. Uses only base, data, out, full,
// chat_template and resume of the options. Error when something is missing or inconsistent.
train::RunConfig finetune_config(const FinetuneOptions& options, const std::function<void(train::RunConfig&)>& apply);

// What run_training() needs of the options.
TrainOptions training_of(const FinetuneOptions& options);

}  // namespace quern::api
