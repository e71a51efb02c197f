// An owning array, aligned for vector loads and, when large, to huge pages.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "core/cache_line.h"

namespace quern {

// Every allocation starts on a cache line, which is also the widest vector, so no vector load of an aligned row is
// split.
inline constexpr size_t kAlignment = 64;
static_assert(kAlignment % kCacheLine == 0);

// Allocations of at least this size are mapped from the kernel, aligned to huge pages and marked for them: one TLB
// entry then covers 2 MiB instead of 4 KiB. For smaller allocations a huge page would be mostly empty.
inline constexpr size_t kHugePage = size_t{2} << 20;

enum class Fill { kNone, kZero };

// Returns `bytes` of memory aligned to kAlignment (to kHugePage from that size on), or null for 0. Throws Error with
// the size if memory is short. Pass the same size to free_bytes. Any thread.
void* allocate_bytes(size_t bytes, Fill fill);
void free_bytes(void* memory, size_t bytes) noexcept;

// Sets the bytes to zero, and returns the whole pages among them to the system until they are written again.
void discard_bytes(void* memory, size_t bytes) noexcept;

// For large memory of which parts stay unused: a huge page would take 2 MiB as soon as a byte of it is written.
void use_small_pages(void* memory, size_t bytes) noexcept;

// count * size. Throws Error if the product overflows.
size_t checked_bytes(size_t count, size_t size);

// Move-only owner of `size()` elements. T is plain data, so nothing is constructed: without Fill::kZero the elements
// are uninitialized. Large buffers reserve address space and take memory when touched; zeroing them is free.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size, Fill fill = Fill::kNone)
      : data_(static_cast<T*>(allocate_bytes(checked_bytes(size, sizeof(T)), fill))), size_(size) {}
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer taken(std::move(other));
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    return *this;
  }
  ~AlignedBuffer() { free_bytes(data_, size_bytes()); }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  bool empty() const noexcept { return size_ == 0; }
  std::span<T> span() noexcept { return {data_, size_}; }
  std::span<const T> span() const noexcept { return {data_, size_}; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
void use_small_pages(std::span<T> values) noexcept {
  use_small_pages(values.data(), values.size_bytes());
}

template <typename T>
void discard(std::span<T> values) noexcept {
  discard_bytes(values.data(), values.size_bytes());
}

}  // namespace quern
