// config.json: what Hugging Face `transformers` needs to know about a model to open its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::formats {

// Token ids with a meaning for generation.
struct SpecialTokens {
  std::optional<int32_t> bos = {};  // starts a text
  std::vector<int32_t> eos = {};    // each ends a text
  std::optional<int32_t> pad = {};

  bool operator==(const SpecialTokens&) const = default;
};

struct HfConfig {
  nn::ModelConfig model;
  double dropout = 0.0;  // in full precision: that of the model is a float
  SpecialTokens tokens = {};
  std::string_view dtype = "float32";  // of the weights beside it
};

// gpt2, llama, qwen2 or qwen3, as in model_type.
std::string_view hf_type(nn::Family family);
std::optional<nn::Family> family_of_hf_type(std::string_view type);

// The settings in which the model differs from those of transformers, as "model.norm=rmsnorm, ..."; empty if
// transformers can open it.
std::string unlike_hf(const nn::ModelConfig& model);

// A GPT2LMHeadModel with the tanh approximation of GELU, a LlamaForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM, or,
// for other models, the type "quern" with its settings, which transformers refuses. The spellings are those that
// versions 4 and 5 of transformers both understand.
std::string to_json(const HfConfig& config);

}  // namespace quern::formats
