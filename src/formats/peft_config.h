// adapter_config.json of Hugging Face PEFT: which layers of a model have adapters, and of which kind.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/model_config.h"

namespace quern::formats {

struct PeftConfig {
  nn::AdapterConfig adapters;  // without targets, which the tensors decide
  // The ends of names in target_modules; empty if that is a pattern, "all-linear" or absent.
  std::vector<std::string> target_modules;
  std::vector<size_t> blocks;  // layers_to_transform; empty for all
  std::string base;            // base_model_name_or_path; may be empty

  // Whether a layer may have an adapter. `module` is its complete name in transformers, `block` its number.
  bool covers(std::string_view module, size_t block) const;
};

// `model` is the one that the adapters are for; `where` is for messages. Error, naming field and value, for every
// setting that would make the adapters compute something else than W + s B A. Other fields are ignored.
PeftConfig parse_peft_config(std::string_view text, std::string_view where, const nn::ModelConfig& model);

}  // namespace quern::formats
