#include "config/recompute.h"

#include <fmt/format.h>

#include <cassert>
#include <charconv>
#include <utility>

namespace quern::train {
namespace {

constexpr std::string_view kInterval = "interval=";

constexpr std::pair<std::string_view, Recompute::Kind> kNames[] = {{"auto", Recompute::Kind::kAuto},
                                                                   {"none", Recompute::Kind::kNone},
                                                                   {"every-layer", Recompute::Kind::kEveryLayer},
                                                                   {"sqrt", Recompute::Kind::kSqrt}};

}  // namespace

std::optional<Recompute> parse_recompute(std::string_view text) {
  for (const auto& [name, kind] : kNames) {
    if (text == name) return Recompute{kind, 0};
  }
  if (!text.starts_with(kInterval)) return std::nullopt;
  text.remove_prefix(kInterval.size());
  uint64_t interval = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), interval);
  if (code != std::errc{} || stop != text.data() + text.size() || interval == 0) return std::nullopt;
  return Recompute{Recompute::Kind::kInterval, interval};
}

std::string to_text(const Recompute& recompute) {
  for (const auto& [name, kind] : kNames) {
    if (recompute.kind == kind) return std::string(name);
  }
  return fmt::format("{}{}", kInterval, recompute.interval);
}

size_t layers_at_once(const Recompute& recompute, size_t layers) {
  switch (recompute.kind) {
    case Recompute::Kind::kEveryLayer:
      return 1;
    case Recompute::Kind::kSqrt: {
      size_t root = 1;
      while (root * root < layers) ++root;
      return root;
    }
    case Recompute::Kind::kInterval:
      return recompute.interval;
    case Recompute::Kind::kNone:
      return layers;
    case Recompute::Kind::kAuto:
      break;
  }
  assert(false && "auto is decided by the plan");
  return layers;
}

}  // namespace quern::train
