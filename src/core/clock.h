// Monotonic time, for measurements.
#pragma once

#include <chrono>
#include <ctime>

namespace quern {

inline double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU time that all threads of the process have used so far, in seconds. A system call, 250 ns.
inline double cpu_seconds() noexcept {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace quern
