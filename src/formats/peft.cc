#include "formats/peft.h"

#include <cmath>
#include <cstdint>
#include <set>

#include "core/json.h"
#include "nn/models/language_model.h"

namespace quern::formats {
namespace {

// A whole number without a point, as PEFT, which calls alpha an int, writes it.
nlohmann::json number(double value) {
  const bool whole = std::nearbyint(value) == value && std::abs(value) < 1e15;
  return whole ? nlohmann::json(static_cast<int64_t>(value)) : nlohmann::json(value);
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// The last parts of the adapted layers' names if they stand for nothing else, otherwise the complete names: PEFT adapts
// every module whose name ends in one of them.
std::vector<std::string> module_names(const std::vector<std::string>& linears,
                                      const std::vector<std::string>& adapted) {
  const std::set<std::string> all(adapted.begin(), adapted.end());
  std::set<std::string> names;
  for (const std::string& name : adapted) names.insert(last_part(name));
  for (const std::string& name : linears) {
    if (names.contains(last_part(name)) && !all.contains(name)) return adapted;
  }
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::string> adapter_targets(const std::vector<std::string>& linears,
                                         const std::vector<std::string>& adapted) {
  if (linears.size() == adapted.size()) return {std::string(nn::kAllLayers)};
  return module_names(linears, adapted);
}

checkpoint::ExtraFile peft_config_file(const nn::ModelConfig& model, const std::string& base) {
  const nn::AdapterConfig& adapters = model.adapters;
  const nn::Declaration declaration = nn::declare(model);
  const nlohmann::json config = {{"base_model_name_or_path", base},
                                 {"bias", "none"},
                                 {"fan_in_fan_out", model.is_gpt2()},
                                 {"inference_mode", true},
                                 {"init_lora_weights", true},
                                 {"lora_alpha", number(adapters.alpha)},
                                 {"lora_dropout", adapters.dropout},
                                 {"modules_to_save", nullptr},
                                 {"peft_type", "LORA"},
                                 {"r", adapters.rank},
                                 {"target_modules", module_names(declaration.linears, declaration.adapted)},
                                 {"task_type", "CAUSAL_LM"},
                                 {"use_dora", false},
                                 {"use_rslora", adapters.rank_stabilized}};
  return {.name = kPeftConfigFile, .text = json_text(config, 2) + "\n"};
}

}  // namespace quern::formats
