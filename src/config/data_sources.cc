#include "config/data_sources.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace quern::train {
namespace {

constexpr double kMaxWeight = 1e6;

std::optional<double> parse_weight(std::string_view text) {
  double weight = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), weight);
  const bool is_number = code == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!is_number || !(weight >= 1 / kMaxWeight && weight <= kMaxWeight)) return std::nullopt;
  return weight;
}

}  // namespace

WeightedSource parse_source(std::string_view text) {
  const size_t space = text.rfind(' ');
  const std::optional<double> weight =
      space == std::string_view::npos ? std::nullopt : parse_weight(text.substr(space + 1));
  const std::string path(text.substr(0, text.find_last_not_of(' ', space) + 1));
  if (!weight || path.empty() || !is_utf8(path)) {
    throw Error(
        "[config] data.sources: expected a path, a space and a weight from 1e-6 to 1e6, as \"books/ 3\", found {}",
        in_quotes(text));
  }
  return {{path}, *weight};
}

std::string to_text(const WeightedSource& source) { return fmt::format("{} {}", source.paths.front(), source.weight); }

std::vector<WeightedSource> weighted_sources(const RunConfig& config) {
  if (config.data.sources.empty()) return {{config.data.paths, 1}};
  std::vector<WeightedSource> sources;
  for (const std::string& text : config.data.sources) sources.push_back(parse_source(text));
  return sources;
}

void replace_data(const RunConfig::Data& base, RunConfig::Data& data) {
  const bool paths_given = data.paths != base.paths, sources_given = data.sources != base.sources;
  if (paths_given && !sources_given) data.sources.clear();
  if (sources_given && !paths_given) data.paths.clear();
}

}  // namespace quern::train
