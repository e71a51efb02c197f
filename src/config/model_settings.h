// The model that a run's configuration describes.
#pragma once

#include <cstdint>

#include "config/config.h"
#include "nn/models/model_config.h"

namespace quern::train {

// The model part of a run's config, with the vocabulary of the data.
nn::ModelConfig model_config(const RunConfig& config, uint32_t vocabulary);

}  // namespace quern::train
