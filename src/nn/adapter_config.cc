#include "nn/adapter_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"

namespace quern::nn {
namespace {

// The last parts of the names, each once: what a target may be.
std::vector<std::string> last_parts(const std::vector<std::string>& layers) {
  std::set<std::string> parts;
  for (const std::string& layer : layers) parts.insert(layer.substr(layer.rfind('.') + 1));
  return {parts.begin(), parts.end()};
}

}  // namespace

double AdapterConfig::scale() const {
  return alpha / (rank_stabilized ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
}

bool AdapterConfig::covers(std::string_view layer) const {
  if (rank == 0) return false;
  return std::ranges::any_of(
      targets, [&](const std::string& target) { return target == kAllLayers || ends_in_name(layer, target); });
}

bool ends_in_name(std::string_view name, std::string_view pattern) {
  if (!name.ends_with(pattern) || pattern.empty()) return false;
  return name.size() == pattern.size() || name[name.size() - pattern.size() - 1] == '.';
}

bool has_part(std::string_view name, std::string_view pattern) {
  return fmt::format(".{}.", name).find(fmt::format(".{}.", pattern)) != std::string::npos;
}

void check_targets(const AdapterConfig& config, const std::vector<std::string>& layers) {
  if (config.rank == 0) return;
  for (const std::string& target : config.targets) {
    const auto matches = [&](const std::string& layer) { return ends_in_name(layer, target); };
    if (target == kAllLayers || std::ranges::any_of(layers, matches)) continue;
    throw Error("[model] lora.targets: expected all, or linear layers of the model ({}), found {}",
                fmt::join(last_parts(layers), ", "), in_quotes(target));
  }
  if (config.targets.empty()) throw Error("[model] lora.targets: expected at least one layer, found none");
}

}  // namespace quern::nn
