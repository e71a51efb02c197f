// Copies between the caller's memory and rows that other threads may read or write concurrently.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace quern::replay {

// Whether row writes bypass the caches. A row of many cache lines in a ring larger than the caches is read again much
// later, if at all, and an ordinary store would first read from memory the line that it then overwrites.
enum class Through { kCache, kMemory };

// The faster way for rows and a ring of these sizes, from the measurements in row_copy.cc.
Through best_way(size_t row_bytes, uint64_t ring_bytes) noexcept;

// Copies bytes from the caller's memory to a shared row, and back. Any size and alignment; nothing outside is touched,
// since the next row may begin in the same word. A reader that finds the row's word changed afterwards discards its
// copy. A later release store publishes the bytes.
void copy_to_row(std::byte* row, const std::byte* from, size_t bytes, Through way = Through::kCache) noexcept;
void copy_from_row(std::byte* to, const std::byte* row, size_t bytes) noexcept;

// Prefetches the first lines of a row while another is copied: 3 % less time for random rows of 31 and 18 KB.
inline void prefetch_row(const std::byte* row, size_t bytes) noexcept {
  constexpr size_t kAhead = 512;  // from then on the hardware prefetcher follows
  for (size_t i = 0; i < bytes && i < kAhead; i += 64) __builtin_prefetch(row + i);
}

// To be called after the word of a slot is set to "being written" and before its bytes are written: a reader that sees
// one of those bytes and then calls after_row_reads() sees that word, or a later one.
inline void before_row_writes() noexcept {
#if defined(__SANITIZE_THREAD__)
  std::atomic_signal_fence(std::memory_order_release);  // tsan does not support fences; x86 needs none
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
