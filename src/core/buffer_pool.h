// A pool of float buffers, for sizes that vary from call to call, where planning ahead would waste memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

#include "core/aligned_buffer.h"

namespace quern {

class BufferPool;

// A rented buffer of size() floats, aligned to kAlignment. Its destructor returns it to the pool; move-only.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  PooledBuffer(PooledBuffer&& other) noexcept;
  PooledBuffer& operator=(PooledBuffer&& other) noexcept;
  ~PooledBuffer() { give_back(); }

  // Returns the buffer now; size() is 0 afterwards. Idempotent.
  void give_back() noexcept;

  float* data() noexcept { return buffer_.data(); }
  const float* data() const noexcept { return buffer_.data(); }
  size_t size() const noexcept { return size_; }
  std::span<float> span() noexcept { return {buffer_.data(), size_}; }
  std::span<const float> span() const noexcept { return {buffer_.data(), size_}; }

  // The same bytes as elements of another plain type, as many as fit completely. Unspecified until written.
  template <typename T>
  std::span<T> as() noexcept {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return {reinterpret_cast<T*>(buffer_.data()), size_ * sizeof(float) / sizeof(T)};
  }

 private:
  friend class BufferPool;
  PooledBuffer(BufferPool* pool, AlignedBuffer<float> buffer, size_t size) noexcept;

  BufferPool* pool_ = nullptr;
  AlignedBuffer<float> buffer_;  // has the size of its class, so size_ <= buffer_.size()
  size_t size_ = 0;
};

// Size classes are the powers of two from 64 to 65,536 floats. A larger buffer has exactly the requested size and is
// reused only for that size. Returned buffers are retained until trim().
//
// Any thread; a buffer may be returned by a different thread than the one that rented it. One mutex guards everything,
// and no buffer is allocated, cleared or freed while it is held: the pool is not on a training step's path, and one
// lock makes the statistics consistent. The pool must outlive its buffers.
class BufferPool {
 public:
  static constexpr size_t kMinClass = 64;
  static constexpr size_t kMaxClass = 65536;

  // A consistent snapshot: rents == hits + misses and outstanding == rents - returned always hold. Bytes count entire
  // buffers, so a rent of 65 floats counts as 512 bytes.
  struct Statistics {
    uint64_t rents = 0;   // successful ones only
    uint64_t hits = 0;    // served by a returned buffer
    uint64_t misses = 0;  // served by a new buffer
    uint64_t returned = 0;
    uint64_t outstanding = 0;  // rented and not yet returned
    size_t bytes_held = 0;     // idle in the pool
    size_t bytes_rented = 0;   // held by callers
    size_t peak_bytes = 0;     // maximum of held + rented so far
  };

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // Returns a buffer of `size` floats: zeros with Fill::kZero, otherwise uninitialized. Throws Error if memory is
  // short.
  PooledBuffer rent(size_t size, Fill fill = Fill::kNone);

  // Frees every idle buffer and returns the number of bytes freed.
  size_t trim();

  Statistics statistics() const;

  // The number of floats actually allocated for a buffer of `size`.
  static size_t size_class(size_t size) noexcept;

 private:
  friend class PooledBuffer;

  struct SizeClass {
    size_t buffers = 0;                      // idle and rented ones
    std::vector<AlignedBuffer<float>> idle;  // capacity >= buffers, so that returning never allocates
  };

  bool take_idle(size_t floats, AlignedBuffer<float>& buffer);
  void count_new(size_t floats, size_t bytes);
  void give_back(AlignedBuffer<float> buffer) noexcept;

  mutable std::mutex mutex_;
  std::map<size_t, SizeClass> classes_;  // keyed by number of floats
  Statistics statistics_;
};

}  // namespace quern
