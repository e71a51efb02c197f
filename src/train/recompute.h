// Which activations are dropped after forward and computed again in backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::train {

struct Recompute {
  enum class Kind : uint8_t {
    kAuto,        // as little as the memory limit allows
    kNone,        // activations of all layers exist at once
    kEveryLayer,  // of one layer
    kSqrt,        // of the square root of the number of layers, rounded up
    kInterval,    // of `interval` layers
  };
  Kind kind = Kind::kAuto;
  uint64_t interval = 0;

  bool operator==(const Recompute&) const = default;
};

// "auto", "none", "every-layer", "sqrt" or "interval=K" with K from 1; none for anything else.
std::optional<Recompute> parse_recompute(std::string_view text);
std::string to_text(const Recompute& recompute);

// Layers whose activations exist at once; not for kAuto. `interval` is at most `layers` (validate() saw to it).
size_t layers_at_once(const Recompute& recompute, size_t layers);

}  // namespace quern::train
