// Counts every lock, barrier and sleep of the process, in whatever library it happens.
#pragma once

#include <optional>

namespace quern::bench {

// Since the process began.
struct LockCounts {
  long locks =
      0;  // calls to lock or try a mutex or rwlock, to wait on, signal or broadcast a condition, to wait at a barrier
  long futexes = 0;  // sleeping in the kernel until a word of memory changes, and waking those who do
};

// None in builds with a sanitizer, which puts its own functions in the same places.
//
// A program that calls this gets, in place of the C library's functions, ones that count and pass on.
std::optional<LockCounts> lock_counts();

}  // namespace quern::bench
