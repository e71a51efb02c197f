#include "core/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>
#include <utility>

namespace quern {

PooledBuffer::PooledBuffer(BufferPool* pool, AlignedBuffer<float> buffer, size_t size) noexcept
    : pool_(pool), buffer_(std::move(buffer)), size_(size) {}

PooledBuffer::PooledBuffer(PooledBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      buffer_(std::move(other.buffer_)),
      size_(std::exchange(other.size_, 0)) {}

PooledBuffer& PooledBuffer::operator=(PooledBuffer&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  pool_ = std::exchange(other.pool_, nullptr);
  buffer_ = std::move(other.buffer_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void PooledBuffer::give_back() noexcept {
  size_ = 0;
  if (BufferPool* pool = std::exchange(pool_, nullptr)) pool->give_back(std::move(buffer_));
}

BufferPool::~BufferPool() { assert(statistics_.outstanding == 0); }

size_t BufferPool::size_class(size_t size) noexcept {
  return size > kMaxClass ? size : std::bit_ceil(std::max(size, kMinClass));
}

PooledBuffer BufferPool::rent(size_t size, Fill fill) {
  const size_t floats = size_class(size);
  AlignedBuffer<float> buffer;
  if (take_idle(floats, buffer)) {
    if (fill == Fill::kZero) std::fill_n(buffer.data(), size, 0.0f);
  } else {
    buffer = AlignedBuffer<float>(floats, fill);
    count_new(floats, buffer.size_bytes());
  }
  return PooledBuffer(this, std::move(buffer), size);
}

bool BufferPool::take_idle(size_t floats, AlignedBuffer<float>& buffer) {
  const std::lock_guard lock(mutex_);
  const auto found = classes_.find(floats);
  if (found == classes_.end() || found->second.idle.empty()) return false;
  buffer = std::move(found->second.idle.back());
  found->second.idle.pop_back();
  ++statistics_.rents;
  ++statistics_.hits;
  ++statistics_.outstanding;
  statistics_.bytes_held -= buffer.size_bytes();
  statistics_.bytes_rented += buffer.size_bytes();
  return true;
}

void BufferPool::count_new(size_t floats, size_t bytes) {
  const std::lock_guard lock(mutex_);
  SizeClass& size_class = classes_[floats];
  // Reserving exactly one more would copy the list at every miss.
  if (size_class.buffers == size_class.idle.capacity()) size_class.idle.reserve(2 * size_class.buffers + 4);
  ++size_class.buffers;
  ++statistics_.rents;
  ++statistics_.misses;
  ++statistics_.outstanding;
  statistics_.bytes_rented += bytes;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.bytes_held + statistics_.bytes_rented);
}

void BufferPool::give_back(AlignedBuffer<float> buffer) noexcept {
  const std::lock_guard lock(mutex_);
  ++statistics_.returned;
  --statistics_.outstanding;
  statistics_.bytes_rented -= buffer.size_bytes();
  statistics_.bytes_held += buffer.size_bytes();
  const auto found = classes_.find(buffer.size());
  assert(found != classes_.end() && found->second.idle.size() < found->second.idle.capacity());
  found->second.idle.push_back(std::move(buffer));
}

size_t BufferPool::trim() {
  std::vector<AlignedBuffer<float>> freed;  // destroyed after the lock is released: unmapping is a system call
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [floats, size_class] : classes_) count += size_class.idle.size();
  freed.reserve(count);
  for (auto place = classes_.begin(); place != classes_.end();) {
    SizeClass& size_class = place->second;
    size_class.buffers -= size_class.idle.size();
    std::move(size_class.idle.begin(), size_class.idle.end(), std::back_inserter(freed));
    size_class.idle.clear();
    place = size_class.buffers == 0 ? classes_.erase(place) : std::next(place);
  }
  return std::exchange(statistics_.bytes_held, 0);
}

BufferPool::Statistics BufferPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace quern
