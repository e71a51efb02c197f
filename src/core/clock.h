// Time that only goes forward, for measuring.
#pragma once

#include <chrono>

namespace quern {

inline double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace quern
