// Which layers of a model have a low-rank adapter, and what it is like.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quern::nn {

inline constexpr size_t kMaxAdapterRank = 1024;
inline constexpr std::string_view kAllLayers = "all";

struct AdapterConfig {
  size_t rank = 0;  // 0: no adapters
  double alpha = 32;
  double dropout = 0;            // of an adapter's input, in [0, 1)
  bool rank_stabilized = false;  // the scale is alpha / sqrt(rank) instead of alpha / rank
  // Names of linear layers, complete or from a dot on ("q_proj"); "all" stands for all but the output.
  std::vector<std::string> targets = {std::string(kAllLayers)};

  double scale() const;
  bool covers(std::string_view layer) const;
  bool operator==(const AdapterConfig&) const = default;
};

// Whether `name` is `pattern`, or ends in a dot and the pattern: "q_proj" is part of "layers.0.self_attn.q_proj".
bool ends_in_name(std::string_view name, std::string_view pattern);

// Whether the pattern is a series of complete parts of the name: "h.0" is part of "h.0.mlp.c_fc.weight".
bool has_part(std::string_view name, std::string_view pattern);

// Error unless each target of the config is one of these layers.
void check_targets(const AdapterConfig& config, const std::vector<std::string>& layers);

}  // namespace quern::nn
