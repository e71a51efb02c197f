// Adapters in the output of commands.
#pragma once

#include <string>
#include <vector>

#include "config/model_settings.h"
#include "core/json.h"

namespace quern::cli {

// "q_proj, v_proj"; long lists, as those of complete names are, end in "and 26 more".
std::string targets_text(const std::vector<std::string>& targets);

// rank, alpha, scale, dropout, rslora and targets.
nlohmann::ordered_json adapters_json(const nn::AdapterConfig& adapters);

}  // namespace quern::cli
