// Memory that is planned first and used afterwards: one buffer, allocated from front to back.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "core/aligned_buffer.h"

namespace quern {

// The same code lays out the memory twice, so the plan matches the actual use to the byte:
//
//   Arena arena;                 // planning: take() only adds up sizes
//   lay_out(arena);
//   arena.allocate();            // one buffer of planned_bytes()
//   lay_out(arena);              // the same calls now return memory
//
// Not thread-safe. Spans are valid as long as the arena, until reset().
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;  // not movable either: spans refer to it
  Arena& operator=(const Arena&) = delete;

  // Returns n elements, aligned to kAlignment; the memory is not cleared. While planning, returns an empty span for any
  // n. Throws Error if the buffer is too small. That is a bug in the plan rather than bad input, but the check is one
  // comparison next to work on the entire span, and without it release builds would overwrite neighbouring memory.
  template <typename T>
  std::span<T> take(size_t n) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    std::byte* memory = advance(checked_bytes(n, sizeof(T)));
    return memory == nullptr ? std::span<T>{} : std::span<T>(reinterpret_cast<T*>(memory), n);
  }

  void reset() noexcept { used_ = 0; }

  // Ends planning: allocates the planned bytes and starts at the front. Call once. Throws Error if memory is short.
  void allocate(Fill fill = Fill::kNone);

  bool planning() const noexcept { return planning_; }
  size_t used_bytes() const noexcept { return used_; }
  size_t planned_bytes() const noexcept { return planned_; }  // while planning: the total so far
  size_t peak_bytes() const noexcept { return peak_; }        // maximum in use at any time since allocate()

 private:
  std::byte* advance(size_t bytes);

  AlignedBuffer<std::byte> buffer_;
  size_t used_ = 0;
  size_t planned_ = 0;
  size_t peak_ = 0;
  bool planning_ = true;
};

}  // namespace quern
