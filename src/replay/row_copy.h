// Copies between the caller's memory and rows that others may read or write at the same moment.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quern::replay {

// One value in shared rows. `at` is aligned to its type.
template <typename T>
T load_shared(const std::byte* at) noexcept {
  T value;
  __atomic_load(reinterpret_cast<const T*>(at), &value, __ATOMIC_RELAXED);
  return value;
}
template <typename T>
void store_shared(std::byte* at, T value) noexcept {
  __atomic_store(reinterpret_cast<T*>(at), &value, __ATOMIC_RELAXED);
}

// Bytes from the caller's memory to a shared row, and back; any sizes and alignments, nothing outside is touched. A
// reader that finds its row's word changed afterwards throws away what it got.
void copy_to_row(std::byte* row, const std::byte* from, size_t bytes) noexcept;
void copy_from_row(std::byte* to, const std::byte* row, size_t bytes) noexcept;

// After the word of a slot says "being written", before its bytes are: whoever sees one of those bytes, copies and then
// calls after_row_reads() sees that word, or a later one.
inline void before_row_writes() noexcept {
#if defined(__SANITIZE_THREAD__)
  std::atomic_signal_fence(std::memory_order_release);  // tsan knows no fences; x86 needs none
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

inline void after_row_reads() noexcept {
#if defined(__SANITIZE_THREAD__)
  std::atomic_signal_fence(std::memory_order_acquire);
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace quern::replay
