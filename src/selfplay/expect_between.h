// Checks of settings.
#pragma once

#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace quern::selfplay {

// Error that names the setting unless low <= value <= high; a NaN is refused too.
template <typename Number>
void expect_between(std::string_view name, Number value, std::type_identity_t<Number> low,
                    std::type_identity_t<Number> high) {
  if (value >= low && value <= high) return;
  throw Error("[selfplay] {}: expected a number from {} to {}, found {}", name, low, high, value);
}

}  // namespace quern::selfplay
