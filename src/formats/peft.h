// The settings of adapters as Hugging Face PEFT stores them: writes adapter_config.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/models/model_config.h"

namespace quern::formats {

inline constexpr const char* kPeftConfigFile = "adapter_config.json";
inline constexpr const char* kPeftWeightsFile = "adapter_model.safetensors";

// The shortest names that stand for these layers, in the order of `linears`, and for no other of them: "all" for all,
// the last parts of their names, or the complete names. What settings of adapters call their targets.
std::vector<std::string> adapter_targets(const std::vector<std::string>& linears,
                                         const std::vector<std::string>& adapted);

// adapter_config.json of the model's adapters. `base` is the path or name of the model that they belong to.
checkpoint::ExtraFile peft_config_file(const nn::ModelConfig& model, const std::string& base);

}  // namespace quern::formats
