// config.json: what Hugging Face `transformers` needs to open model.safetensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/models/model_config.h"

namespace quern::checkpoint {

struct HfConfig {
  nn::ModelConfig model;
  double dropout = 0.0;                     // in full precision: that of the model is a float
  std::optional<int32_t> end_of_text = {};  // where transformers stops generating, and starts if there is no prompt
};

// The settings in which the model differs from the GPT-2 of transformers, as "model.norm=rmsnorm, ..."; empty if
// transformers can open it.
std::string unlike_gpt2(const nn::ModelConfig& model);

// A GPT2LMHeadModel with the tanh approximation of GELU, or, for other models, the type "quern" with its settings,
// which transformers refuses.
std::string to_json(const HfConfig& config);

}  // namespace quern::checkpoint
