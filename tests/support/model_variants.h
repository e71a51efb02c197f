// Models that differ from GPT-2, for tests that must hold for each of them.
#pragma once

#include <string>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::nn {

// A model that differs from GPT-2 in one setting, or in all.
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
inline ModelConfig with(const Variant& variant, ModelConfig config) {
  variant.apply(config);
  return config;
}

}  // namespace quern::nn
