// Human-readable numbers of bounded width: a damaged file can contain any, and -1e308 has 309 digits.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace quern::report {

// Fixed notation with `digits` decimals, or four significant digits for magnitudes of `large` and above.
inline std::string bounded(double value, int digits, double large) {
  return std::abs(value) < large ? fmt::format("{:.{}f}", value, digits) : fmt::format("{:.4g}", value);
}

inline std::string loss_text(double loss) { return bounded(loss, 4, 1e6); }

}  // namespace quern::report
