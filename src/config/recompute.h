// Which activations are discarded after forward and recomputed in backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::train {

struct Recompute {
  enum class Kind : uint8_t {
    kAuto,        // as few as the memory limit allows
    kNone,        // activations of all layers are in memory at once
    kEveryLayer,  // of one layer
    kSqrt,        // of the square root of the number of layers, rounded up
    kInterval,    // of `interval` layers
  };
  Kind kind = Kind::kAuto;
  uint64_t interval = 0;

  bool operator==(const Recompute&) const = default;
};

// Parses "auto", "none", "every-layer", "sqrt" or "interval=K" with K >= 1; nullopt for anything else.
std::optional<Recompute> parse_recompute(std::string_view text);
std::string to_text(const Recompute& recompute);

// Layers whose activations are in memory at once. Not for kAuto. `interval` must be at most `layers`, which validate()
// ensures.
size_t layers_at_once(const Recompute& recompute, size_t layers);

}  // namespace quern::train
