// Distinguishes a child of fork() from its parent, without a system call.
#pragma once

#include <atomic>
#include <cstdint>

namespace quern::replay {

namespace detail {
inline std::atomic<uint64_t> forks{0};
}  // namespace detail

// Number of fork() calls between the process that first called watch_forks() and this one. Relaxed, because a child
// starts with a single thread.
inline uint64_t fork_count() noexcept { return detail::forks.load(std::memory_order_relaxed); }

// Enables fork_count(). Error when the system does not support it. Any thread, any number of times.
void watch_forks();

}  // namespace quern::replay
