// Memory that is planned, then used: one buffer, handed out from the front.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "core/aligned_buffer.h"

namespace quern {

// The same code lays memory out twice, so the plan is what is used, to the byte:
//
//   Arena arena;                 // planning: take() only adds up
//   lay_out(arena);
//   arena.allocate();            // one buffer of planned_bytes()
//   lay_out(arena);              // the same calls now return memory
//
// Not for several threads at once. Spans live as long as the arena, or until what lies before them is released.
class Arena {
 public:
  // A place to go back to: everything taken since then is given up by release().
  enum class Mark : size_t {};

  // Gives up, at the end of the scope, what was taken in it; its bytes are used again by what comes after, so the plan
  // grows by the largest of several scopes and not by their sum. Scopes end in the reverse order of their beginning.
  class Scope {
   public:
    explicit Scope(Arena& arena) noexcept : arena_(arena), mark_(arena.mark()) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { arena_.release(mark_); }

   private:
    Arena& arena_;
    Mark mark_;
  };

  Arena() = default;
  Arena(const Arena&) = delete;  // and no move: spans and scopes refer to it
  Arena& operator=(const Arena&) = delete;

  // n elements, aligned to kAlignment, with whatever values the bytes had. While planning: an empty span, whatever n.
  // Throws Error when the buffer is too small. That is a bug in the plan and not bad input, but the check is one
  // compare next to work on the whole span, and without it release builds would write over their neighbours.
  template <typename T>
  std::span<T> take(size_t n) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    std::byte* memory = advance(checked_bytes(n, sizeof(T)));
    return memory == nullptr ? std::span<T>{} : std::span<T>(reinterpret_cast<T*>(memory), n);
  }

  Mark mark() const noexcept { return Mark{used_}; }
  void release(Mark mark) noexcept;  // `mark` is of this arena and not already given up by an earlier release
  void reset() noexcept { used_ = 0; }

  // Ends planning: allocates the planned bytes and starts at the front. Once; Error when there is not enough memory.
  void allocate(Fill fill = Fill::kNone);

  bool planning() const noexcept { return planning_; }
  size_t used_bytes() const noexcept { return used_; }
  size_t planned_bytes() const noexcept { return planned_; }  // while planning: so far
  size_t peak_bytes() const noexcept { return peak_; }        // most that was in use at once, since allocate()

 private:
  std::byte* advance(size_t bytes);

  AlignedBuffer<std::byte> buffer_;
  size_t used_ = 0;
  size_t planned_ = 0;
  size_t peak_ = 0;
  bool planning_ = true;
};

}  // namespace quern
