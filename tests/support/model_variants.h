// Models of every family, and variants of GPT-2, for tests that must hold for each of them.
#pragma once

#include <string>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::nn {

// A model that differs from GPT-2 in one setting, in all, or in its family.
struct Variant {
  std::string name;
  void (*apply)(ModelConfig&);
};
inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"Gpt2", [](ModelConfig&) {}},
      {"RmsNorm", [](ModelConfig& c) { c.norm = NormKind::kRmsnorm; }},
      {"Rotary", [](ModelConfig& c) { c.positions = Positions::kRotary; }},
      {"QkNorm", [](ModelConfig& c) { c.qk_norm = true; }},
      {"Relu2", [](ModelConfig& c) { c.activation = Activation::kRelu2; }},
      {"Untied", [](ModelConfig& c) { c.tied_output = false; }},
      {"LogitCap", [](ModelConfig& c) { c.logit_cap = 3.0f; }},
      {"Llama",
       [](ModelConfig& c) {
         c.family = Family::kLlama;
         c.kv_heads = 1;
         c.inner_width = 40;
         c.tied_output = false;
       }},
      {"LlamaWithBiases",
       [](ModelConfig& c) {
         c.family = Family::kLlama;
         c.attention_bias = c.mlp_bias = true;
         c.head_width = 10;
         c.rotary = {.base = 100.0, .scaling = RotaryScaling::kLlama3, .factor = 8.0, .original_context = 20};
       }},
      {"Qwen2",
       [](ModelConfig& c) {
         c.family = Family::kQwen2;
         c.kv_heads = 1;
         c.norm_epsilon = 1e-2;
         c.rotary = {.base = 500.0, .scaling = RotaryScaling::kLinear, .factor = 2.0};
       }},
      {"Qwen3",
       [](ModelConfig& c) {
         c.family = Family::kQwen3;
         c.kv_heads = 1;
         c.head_width = 12;
         c.norm_epsilon = 1e-6;
       }},
      {"Modern",
       [](ModelConfig& c) {
         c.norm = NormKind::kRmsnorm;
         c.positions = Positions::kRotary;
         c.activation = Activation::kRelu2;
         c.qk_norm = c.zero_projections = true;
         c.tied_output = false;
         c.logit_cap = 3.0f;
       }},
  };
  return all;
}
// One of each kind of code: GPT-2, Llama, Qwen3 and the most modern GPT-2.
inline std::vector<Variant> main_variants() {
  std::vector<Variant> some = variants();
  std::erase_if(some, [](const Variant& variant) {
    return variant.name != "Gpt2" && variant.name != "Llama" && variant.name != "Qwen3" && variant.name != "Modern";
  });
  return some;
}
inline ModelConfig with(const Variant& variant, ModelConfig config) {
  variant.apply(config);
  return config;
}

}  // namespace quern::nn
