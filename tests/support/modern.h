// Settings of models that differ from GPT-2: in all of its variants, or in their family.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace quern::test {

inline train::RunConfig::Model modern(train::RunConfig::Model model) {
  model.norm = nn::NormKind::kRmsnorm;
  model.positions = nn::Positions::kRotary;
  model.activation = nn::Activation::kRelu2;
  model.qk_norm = model.zero_projections = true;
  model.tied_output = false;
  model.logit_cap = 15;
  return model;
}

// Keys and values shared by all heads, an output of its own. `heads` must not be 1.
inline train::RunConfig::Model llama(train::RunConfig::Model model) {
  model.family = nn::Family::kLlama;
  model.kv_heads = 1;
  model.tied_output = false;
  model.attention_bias = model.mlp_bias = true;
  return model;
}

// Heads wider than the residual stream, normalized with weights.
inline train::RunConfig::Model qwen3(train::RunConfig::Model model) {
  model.family = nn::Family::kQwen3;
  model.head_dim = model.width / model.heads * 2;
  return model;
}

struct ModelKind {
  std::string name;
  train::RunConfig::Model (*apply)(train::RunConfig::Model);
};
inline const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> all = {
      {"Gpt2", [](train::RunConfig::Model model) { return model; }},
      {"Modern", modern},
      {"Llama", llama},
      {"Qwen3", qwen3},
  };
  return all;
}

}  // namespace quern::test
