// Human-readable durations.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace quern::report {

// "1m05s", "2h03m"; "1.2e+300 s" for times that only a damaged file can contain.
inline std::string duration(double seconds) {
  constexpr double kMaxLength = 3600.0 * 1e6;  // more than a century
  if (!(seconds >= 0 && seconds <= kMaxLength)) return fmt::format("{:.4g} s", seconds);
  const auto s = static_cast<uint64_t>(std::llround(seconds));
  if (s >= 3600) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}m{:02}s", s / 60, s % 60);
}

}  // namespace quern::report
