// The model that a run's configuration describes.
#pragma once

#include <cstdint>
#include <string>

#include "config/config.h"
#include "nn/models/model_config.h"

namespace quern::train {

// The settings in which the model differs from GPT-2, apart from its sizes, as "norm=rmsnorm, qk_norm=true"; empty for
// GPT-2.
std::string variants_text(const RunConfig& config);

// The model part of a run's config, with the vocabulary of the data.
nn::ModelConfig model_config(const RunConfig& config, uint32_t vocabulary);

// The inverse: sets the model part of `config`, with the vocabulary. `dropout` is in full precision.
void set_model(RunConfig& config, const nn::ModelConfig& model, double dropout);

}  // namespace quern::train
