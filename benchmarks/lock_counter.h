// Counts every lock, barrier and sleep of the process, in any library.
#pragma once

#include <optional>

namespace quern::bench {

// Counts since the start of the process.
struct LockCounts {
  long locks =
      0;  // calls that lock or try a mutex or rwlock, wait on, signal or broadcast a condition, or wait at a barrier
  long futexes = 0;  // futex waits and wakes
};

// nullopt in builds with a sanitizer, which replaces the same functions.
//
// A program that calls this is linked with replacements of the C library's functions that count calls and forward them.
std::optional<LockCounts> lock_counts();

}  // namespace quern::bench
