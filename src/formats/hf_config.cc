#include "formats/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/json.h"

namespace quern::formats {
namespace {

using Json = nlohmann::ordered_json;

// In the order of nn::Family.
struct FamilyNames {
  std::string_view type;
  const char* architecture;
};
constexpr std::array<FamilyNames, 4> kFamilies = {{{"gpt2", "GPT2LMHeadModel"},
                                                   {"llama", "LlamaForCausalLM"},
                                                   {"qwen2", "Qwen2ForCausalLM"},
                                                   {"qwen3", "Qwen3ForCausalLM"}}};

const FamilyNames& names_of(nn::Family family) { return kFamilies[static_cast<size_t>(family)]; }

// The settings that transformers' models do not have, with the names of config.toml.
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

Json rope_scaling(const nn::RotaryConfig& rotary) {
  switch (rotary.scaling) {
    case nn::RotaryScaling::kNone:
      return nullptr;
    case nn::RotaryScaling::kLinear:
      return {{"rope_type", "linear"}, {"factor", rotary.factor}};
    case nn::RotaryScaling::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", rotary.factor},
              {"low_freq_factor", rotary.low_frequency},
              {"high_freq_factor", rotary.high_frequency},
              {"original_max_position_embeddings", rotary.original_context}};
  }
  return nullptr;
}

void add_llama(const nn::ModelConfig& model, Json& json) {
  json.update({{"num_hidden_layers", model.layers},
               {"num_attention_heads", model.heads},
               {"num_key_value_heads", model.key_heads()},
               {"head_dim", model.head_dim()},
               {"hidden_size", model.width},
               {"intermediate_size", model.inner()},
               {"max_position_embeddings", model.positions_limit()},
               {"vocab_size", model.vocabulary},
               {"hidden_act", "silu"},
               {"rms_norm_eps", model.norm_epsilon},
               {"rope_theta", model.rotary.base},
               {"rope_scaling", rope_scaling(model.rotary)},
               {"attention_dropout", 0.0}});
  if (model.family != nn::Family::kQwen2) json["attention_bias"] = model.attention_bias;
  if (model.family == nn::Family::kLlama) json["mlp_bias"] = model.mlp_bias;
  if (model.family != nn::Family::kLlama) json["use_sliding_window"] = false;
}

void add_gpt2(const HfConfig& config, bool exact, Json& json) {
  const nn::ModelConfig& model = config.model;
  json.update({{"n_layer", model.layers},
               {"n_head", model.heads},
               {"n_embd", model.width},
               {"n_inner", model.inner() == 4 * model.width ? Json(nullptr) : Json(model.inner())},
               {"n_positions", model.positions_limit()},
               {"n_ctx", model.positions_limit()},
               {"vocab_size", model.vocabulary}});
  if (exact) {
    json.update({{"activation_function", "gelu_new"}, {"layer_norm_epsilon", model.norm_epsilon}});
  } else {
    for (const Variant& variant : variants(model)) json[variant.name] = variant.value;
  }
  json.update({{"embd_pdrop", config.dropout},
               {"attn_pdrop", config.dropout},
               {"resid_pdrop", config.dropout},
               {"scale_attn_weights", true}});
}

Json id_or_null(const std::optional<int32_t>& id) { return id ? Json(*id) : Json(nullptr); }

}  // namespace

std::string_view hf_type(nn::Family family) { return names_of(family).type; }

std::optional<nn::Family> family_of_hf_type(std::string_view type) {
  for (size_t i = 0; i < kFamilies.size(); ++i) {
    if (kFamilies[i].type == type) return static_cast<nn::Family>(i);
  }
  return std::nullopt;
}

std::string unlike_hf(const nn::ModelConfig& model) {
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
  const bool known = unlike_hf(model).empty();
  Json json;
  if (known) json["architectures"] = {names_of(model.family).architecture};
  json["model_type"] = known ? hf_type(model.family) : "quern";
  if (model.is_gpt2()) {
    add_gpt2(config, known, json);
  } else {
    add_llama(model, json);
  }
  const std::vector<int32_t>& eos = config.tokens.eos;
  json.update({{"initializer_range", 0.02},
               {"tie_word_embeddings", model.tied_output},
               {"bos_token_id", id_or_null(config.tokens.bos)},
               {"eos_token_id", eos.empty()       ? Json(nullptr)
                                : eos.size() == 1 ? Json(eos[0])
                                                  : Json(eos)}});
  if (config.tokens.pad) json["pad_token_id"] = *config.tokens.pad;
  json.update({{"torch_dtype", config.dtype}, {"use_cache", true}});
  return json_text(json, 2) + "\n";
}

}  // namespace quern::formats
