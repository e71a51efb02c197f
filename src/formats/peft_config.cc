#include "formats/peft_config.h"

#include <algorithm>

#include "core/error.h"
#include "formats/hf_fields.h"

namespace quern::formats {
namespace {

using Json = nlohmann::json;

// Kinds of adapters that are more than W + s B A, and weights besides those of adapters.
void refuse_variants(const HfFields& fields) {
  if (fields.text("peft_type", "") != "LORA") fields.refuse("peft_type", "LORA");
  if (fields.text("task_type", "CAUSAL_LM") != "CAUSAL_LM") fields.refuse("task_type", "CAUSAL_LM");
  if (fields.text("bias", "none") != "none") fields.refuse("bias", "none");
  for (const char* key : {"use_dora", "lora_bias", "use_qalora"}) fields.expect_flag(key, false);
  for (const char* key : {"modules_to_save", "rank_pattern", "alpha_pattern", "target_parameters",
                          "trainable_token_indices", "layer_replication", "alora_invocation_tokens", "use_bdlora",
                          "arrow_config", "kasa_config", "monteclora_config"}) {
    fields.expect_empty(key);
  }
}

// The others, such as "pissa", change the weights of the base model too, so the adapters do not fit the original one.
void check_initial(const HfFields& fields) {
  if (!fields.has("init_lora_weights") || fields.at("init_lora_weights").is_boolean()) return;
  const std::string kind = fields.text("init_lora_weights", "");
  if (kind == "gaussian" || kind == "eva" || kind == "orthogonal") return;
  fields.refuse("init_lora_weights", "true, false, gaussian, eva or orthogonal");
}

// Whether the matrices of the base are stored as (in, out), as those of transformers' GPT-2 are.
void check_layout(const HfFields& fields, const nn::ModelConfig& model) {
  if (fields.flag_or("fan_in_fan_out", model.is_gpt2()) == model.is_gpt2()) return;
  fields.refuse("fan_in_fan_out", model.is_gpt2() ? "true for a gpt2" : "false for all models but gpt2");
}

std::vector<std::string> read_modules(const HfFields& fields) {
  if (!fields.has("target_modules") || fields.at("target_modules").is_string()) return {};
  const Json& list = fields.at("target_modules");
  std::vector<std::string> names;
  if (!list.is_array() || list.empty()) fields.refuse("target_modules", "a list of names, or a pattern");
  for (const Json& name : list) {
    if (!name.is_string()) fields.refuse("target_modules", "a list of names, or a pattern");
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<size_t> read_blocks(const HfFields& fields, const nn::ModelConfig& model) {
  constexpr const char* kKey = "layers_to_transform";
  if (!fields.has(kKey)) return {};
  const Json& found = fields.at(kKey);
  std::vector<size_t> blocks;
  for (const Json& block : found.is_array() ? found : Json::array({found})) {
    if (!block.is_number_unsigned() || block.get<uint64_t>() >= model.layers) {
      fields.refuse(kKey, fmt::format("numbers below {}, the layers of the base model", model.layers));
    }
    blocks.push_back(block.get<size_t>());
  }
  return blocks;
}

}  // namespace

bool PeftConfig::covers(std::string_view module, size_t block) const {
  if (!blocks.empty() && std::ranges::find(blocks, block) == blocks.end()) return false;
  const auto ends = [&](const std::string& target) { return nn::ends_in_name(module, target); };
  return target_modules.empty() || std::ranges::any_of(target_modules, ends);
}

PeftConfig parse_peft_config(std::string_view text, std::string_view where, const nn::ModelConfig& model) {
  const Json json = parse_json(text);
  if (json.is_discarded()) throw Error("[import] {}: expected JSON, found something else", where);
  const HfFields fields(json, std::string(where));
  refuse_variants(fields);
  check_initial(fields);
  check_layout(fields, model);
  // The limits are those of the settings of a run, the defaults those of PEFT.
  return {.adapters = {.rank = fields.size_or("r", nn::kMaxAdapterRank, 8),
                       .alpha = fields.real_or("lora_alpha", 1e-6, 1e6, 8.0),
                       .dropout = fields.real_or("lora_dropout", 0.0, 0.99, 0.0),
                       .rank_stabilized = fields.flag_or("use_rslora", false),
                       .targets = {}},
          .target_modules = read_modules(fields),
          .blocks = read_blocks(fields, model),
          .base = fields.text("base_model_name_or_path", "")};
}

}  // namespace quern::formats
