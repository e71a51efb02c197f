// data.sources: the sources of a mixture and their weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace quern::train {

struct WeightedSource {
  std::vector<std::string> paths;
  double weight = 1;
};

// "books/ 3" as a path and a weight, which follows the last space. Error, naming data.sources, for any other form and
// for a weight that is not a number above 0, at most 1e6.
WeightedSource parse_source(std::string_view text);
std::string to_text(const WeightedSource& source);

// The sources of a run: those of data.sources, or one with all data.paths (none for generated stories).
std::vector<WeightedSource> weighted_sources(const RunConfig& config);

// data.paths and data.sources exclude each other: the one that was given, and so differs from `base`, replaces the one
// that comes from there.
void replace_data(const RunConfig::Data& base, RunConfig::Data& data);

}  // namespace quern::train
