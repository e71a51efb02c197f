// Conversion of priorities from double.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace quern::replay {

// The nearest float, the type of the buffer's priorities. A value above 0 stays above 0, because a row of priority 0 is
// never drawn. Error when the value is finite and larger than all floats; negative values, NaN and infinity are left
// for the buffer to reject.
inline float priority_from(double value) {
  constexpr double kOverflow = 0x1.ffffffp127;  // half an ulp above the largest float: rounds to infinity from here on
  if (std::isfinite(value) && value >= kOverflow) {
    throw Error("[replay] priority: expected at most {:.6g}, found {}", std::numeric_limits<float>::max(), value);
  }
  const auto nearest = static_cast<float>(value);
  return value > 0 ? std::max(nearest, std::numeric_limits<float>::denorm_min()) : nearest;
}

}  // namespace quern::replay
