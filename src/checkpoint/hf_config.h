// config.json: what Hugging Face `transformers` needs to open model.safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "nn/models/model_config.h"

namespace quern::checkpoint {

struct HfConfig {
  size_t layers = 0;
  size_t heads = 0;
  size_t width = 0;
  size_t context = 0;
  size_t vocabulary = 0;
  double dropout = 0.0;
  std::optional<int32_t> end_of_text = {};  // where transformers stops generating, and starts if there is no prompt
  double layer_norm_epsilon = 1e-5;
};

// `dropout` is passed in full precision: that of the model is a float.
HfConfig hf_config(const nn::ModelConfig& model, double dropout);

// A GPT2LMHeadModel with tied embeddings and the tanh approximation of GELU.
std::string to_json(const HfConfig& config);

}  // namespace quern::checkpoint
