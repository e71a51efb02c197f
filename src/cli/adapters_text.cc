#include "cli/adapters_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "core/text.h"

namespace quern::cli {

std::string targets_text(const std::vector<std::string>& targets) {
  constexpr size_t kMost = 8;
  const std::span<const std::string> shown = std::span(targets).first(std::min(kMost, targets.size()));
  const std::string text = printable(fmt::format("{}", fmt::join(shown, ", ")));
  return targets.size() == shown.size() ? text : fmt::format("{} and {} more", text, targets.size() - shown.size());
}

nlohmann::ordered_json adapters_json(const nn::AdapterConfig& adapters) {
  return {{"rank", adapters.rank},
          {"alpha", adapters.alpha},
          {"scale", adapters.scale()},
          {"dropout", adapters.dropout},
          {"rslora", adapters.rank_stabilized},
          {"targets", adapters.targets}};
}

}  // namespace quern::cli
