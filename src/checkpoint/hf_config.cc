#include "checkpoint/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/json.h"

namespace quern::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

// The settings that transformers' GPT-2 does not have, with the names of config.toml.
struct Variant {
  const char* name;
  Json value;
  bool differs;
};

std::vector<Variant> variants(const nn::ModelConfig& model) {
  const bool rmsnorm = model.norm == nn::NormKind::kRmsnorm, rotary = model.positions == nn::Positions::kRotary;
  const bool relu2 = model.activation == nn::Activation::kRelu2;
  return {{"norm", rmsnorm ? "rmsnorm" : "layernorm", rmsnorm},
          {"positions", rotary ? "rotary" : "learned", rotary},
          {"activation", relu2 ? "relu2" : "gelu", relu2},
          {"qk_norm", model.qk_norm, model.qk_norm},
          {"logit_cap", model.logit_cap, model.logit_cap > 0}};
}

}  // namespace

std::string unlike_gpt2(const nn::ModelConfig& model) {
  std::vector<std::string> found;
  for (const Variant& variant : variants(model)) {
    if (!variant.differs) continue;
    const std::string value = variant.value.is_string() ? variant.value.get<std::string>() : variant.value.dump();
    found.push_back(fmt::format("model.{}={}", variant.name, value));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

std::string to_json(const HfConfig& config) {
  const nn::ModelConfig& model = config.model;
  const Json end = config.end_of_text ? Json(*config.end_of_text) : Json(nullptr);
  const bool gpt2 = unlike_gpt2(model).empty();
  Json json;
  if (gpt2) json["architectures"] = {"GPT2LMHeadModel"};
  json.update({{"model_type", gpt2 ? "gpt2" : "quern"},
               {"n_layer", model.layers},
               {"n_head", model.heads},
               {"n_embd", model.width},
               {"n_inner", nullptr},
               {"n_positions", model.context},
               {"n_ctx", model.context},
               {"vocab_size", model.vocabulary}});
  if (gpt2) {
    json.update({{"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5}});
  } else {
    for (const Variant& variant : variants(model)) json[variant.name] = variant.value;
  }
  json.update({{"embd_pdrop", config.dropout},
               {"attn_pdrop", config.dropout},
               {"resid_pdrop", config.dropout},
               {"scale_attn_weights", true},
               {"initializer_range", 0.02},
               {"tie_word_embeddings", model.tied_output},
               {"bos_token_id", end},
               {"eos_token_id", end},
               {"torch_dtype", "float32"},
               {"use_cache", true}});
  return json_text(json, 2) + "\n";
}

}  // namespace quern::checkpoint
