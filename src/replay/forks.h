// Telling a child of fork() from its parent, without a system call.
#pragma once

#include <atomic>
#include <cstdint>

namespace quern::replay {

namespace detail {
inline std::atomic<uint64_t> forks{0};
}  // namespace detail

// How many fork() calls lie between the process that called watch_forks() first and this one.
inline uint64_t fork_count() noexcept { return detail::forks.load(std::memory_order_relaxed); }  // a child starts alone

// Makes fork_count() count. Error when the system cannot. Any thread, any number of times.
void watch_forks();

}  // namespace quern::replay
