// A bounded lock-free queue for many producers and many consumers: the prefetch queue and the work queue.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/cache_line.h"
#include "core/error.h"
#include "core/event_count.h"

namespace quern {

// A ring of cells after Dmitry Vyukov's bounded MPMC queue. A cell's sequence number determines who may use it next:
//
//   sequence == 2 p                 empty, waits for the producer of position p
//   sequence == 2 p + 1             holds item p, waits for the consumer of position p
//   sequence == 2 (p + capacity)    emptied: waits for the producer one lap later
//
// A cell is therefore filled only after it was emptied, and read only after it was filled. Counting in twos keeps the
// last two states distinct even for a capacity of 1. The cursors count in twos as well, which leaves bit 0 of the tail
// for `closed`: a single compare-and-swap both takes a position and proves that the queue is still open. An accepted
// item therefore always lies below the final tail, and consumers leave only once the head has reached it. No accepted
// item is lost, regardless of how close() races with push.
//
// Memory orders. A producer writes the item, then stores the cell's sequence with release; this pairs with the
// consumer's acquire load in try_pop. A consumer moves the item out, then stores the sequence with release; this pairs
// with the acquire load in try_push one lap later. Cursors only hand out positions: reading them can be relaxed,
// because a stale value shows in the cell's sequence. The compare-and-swap of a cursor is seq_cst because it is the
// change that sleepers wait for (event_count.h): they check the cursors and not the cells, so publishing an item needs
// no second barrier. A waiter that sees a position taken whose cell is not ready yet does not sleep but retries: the
// other side needs only a few nanoseconds more, or gets this core at one of the yields.
//
// Any number of threads may call any function at any time, except the constructor and the destructor. Items from one
// producer reach one consumer in the order in which they were pushed. A push or a pop is one compare-and-swap and one
// store, without a system call while no thread sleeps. T must be nothrow-movable: a position that was taken cannot be
// given back.
//
// Blocking calls try kTries times before they sleep. 16 pauses and 8 yields take about 4 us, the cost of falling asleep
// and being woken. The yields let the other side run when threads outnumber cores, and save it the wake-up calls: 8
// producers and 8 consumers on 2 cores pass ten times as many items as with 64 pauses and no yield. Tests lower kTries.
template <typename T, int kTries = 24>
class BoundedQueue {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  static constexpr size_t kMaxCapacity = size_t{1} << 30;

  // Throws Error unless `capacity` is a power of two from 1 to kMaxCapacity.
  explicit BoundedQueue(size_t capacity) : mask_(checked(capacity) - 1), cells_(std::make_unique<Cell[]>(capacity)) {
    for (size_t i = 0; i < capacity; ++i) cells_[i].sequence.store(2 * i, std::memory_order_relaxed);
  }
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;
  ~BoundedQueue() {
    while (try_pop()) {
    }
  }

  // Adds the item. Returns false and leaves the item unchanged if the queue is full or closed. The queue also counts as
  // full while the consumer of the oldest position is still moving its item out.
  bool try_push(T&& item) noexcept {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cell_at(tail);
      // Closing makes the tail odd, one more than the cell's sequence can be, so this takes the path for full at no
      // cost.
      const auto turn = static_cast<int64_t>(cell.sequence.load(std::memory_order_acquire) - tail);
      if (turn == 0) {
        if (tail_.compare_exchange_weak(tail, tail + 2, std::memory_order_seq_cst, std::memory_order_relaxed)) {
          ::new (static_cast<void*>(cell.storage)) T(std::move(item));
          cell.sequence.store(tail + 1, std::memory_order_release);  // pairs with the acquire in try_pop
          items_.wake_one();
          return true;
        }
      } else if (turn < 0) {
        return false;
      } else {
        tail = tail_.load(std::memory_order_relaxed);  // another producer was first
      }
    }
  }

  // Takes the oldest item, or returns nullopt if the queue is empty. The queue also counts as empty while the producer
  // of the oldest position is still moving its item in.
  std::optional<T> try_pop() noexcept {
    uint64_t head = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cell_at(head);
      const auto turn = static_cast<int64_t>(cell.sequence.load(std::memory_order_acquire) - (head + 1));
      if (turn == 0) {
        if (head_.compare_exchange_weak(head, head + 2, std::memory_order_seq_cst, std::memory_order_relaxed)) {
          T* stored = std::launder(reinterpret_cast<T*>(cell.storage));
          std::optional<T> item(std::move(*stored));
          stored->~T();
          // Pairs with the acquire in try_push, one lap later.
          cell.sequence.store(head + 2 * capacity(), std::memory_order_release);
          room_.wake_one();
          return item;
        }
      } else if (turn < 0) {
        return std::nullopt;
      } else {
        head = head_.load(std::memory_order_relaxed);  // another consumer was first
      }
    }
  }

  // Adds the item; blocks while the queue is full. Returns false and leaves the item unchanged if the queue is closed.
  bool push(T&& item) noexcept {
    for (;;) {
      for (int i = 0; i < kTries; ++i) {
        if (try_push(std::move(item))) return true;  // NOLINT(bugprone-use-after-move): moved only when it returns true
        if (closed()) return false;
        rest(i);
      }
      room_.sleep_unless([this] { return closed() || !full(); });
    }
  }

  // Takes the oldest item; blocks while the queue is empty. Returns nullopt once the queue is closed and drained.
  std::optional<T> pop() noexcept {
    for (;;) {
      for (int i = 0; i < kTries; ++i) {
        if (std::optional<T> item = try_pop()) return item;
        if (drained()) return std::nullopt;
        rest(i);
      }
      items_.sleep_unless([this] { return closed() || !empty(); });
    }
  }

  bool try_push(const T& item) requires std::is_copy_constructible_v<T> { return try_push(T(item)); }
  bool push(const T& item) requires std::is_copy_constructible_v<T> { return push(T(item)); }

  // After this, every push returns false; items already in the queue can still be popped. Wakes all sleepers.
  // Idempotent.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_seq_cst);
    items_.wake_all();
    room_.wake_all();
  }
  bool closed() const noexcept { return (tail_.load(std::memory_order_seq_cst) & kClosed) != 0; }

  size_t capacity() const noexcept { return mask_ + 1; }
  // Number of items at some moment during the call; for display, not for decisions.
  size_t size() const noexcept {
    const uint64_t head = head_.load(std::memory_order_seq_cst);
    const uint64_t tail = tail_.load(std::memory_order_seq_cst) & ~kClosed;
    return std::min<size_t>((tail - head) / 2, capacity());
  }

 private:
  // One item, or space for one. Each cell has its own cache lines, because another core is using its neighbour.
  struct alignas(std::max(kCacheLine, alignof(T))) Cell {
    std::atomic<uint64_t> sequence;
    alignas(T) std::byte storage[sizeof(T)];  // NOLINT(bugprone-sizeof-expression): T may be a pointer
  };
  static_assert(sizeof(Cell) % kCacheLine == 0 && alignof(Cell) % kCacheLine == 0);
  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

  static constexpr uint64_t kClosed = 1;
  static constexpr int kPauses = 16;  // of the tries, about 0.6 us; the rest yield

  static size_t checked(size_t capacity) {
    if (std::has_single_bit(capacity) && capacity <= kMaxCapacity) return capacity;
    throw Error("[queue] capacity: expected a power of two from 1 to {}, found {}", kMaxCapacity, capacity);
  }

  Cell& cell_at(uint64_t cursor) noexcept { return cells_[(cursor >> 1) & mask_]; }

  // The next three functions read the other side's cursor last. Cursors only grow, so the result was true at that last
  // load: a cursor that was read earlier is never ahead of the actual one.
  bool full() const noexcept {
    const uint64_t tail = tail_.load(std::memory_order_seq_cst) & ~kClosed;
    return static_cast<int64_t>(tail - head_.load(std::memory_order_seq_cst)) >= static_cast<int64_t>(2 * capacity());
  }
  bool empty() const noexcept {
    const uint64_t head = head_.load(std::memory_order_seq_cst);
    return static_cast<int64_t>((tail_.load(std::memory_order_seq_cst) & ~kClosed) - head) <= 0;
  }
  bool drained() const noexcept {
    const uint64_t head = head_.load(std::memory_order_seq_cst);
    const uint64_t tail = tail_.load(std::memory_order_seq_cst);
    return (tail & kClosed) != 0 && static_cast<int64_t>((tail & ~kClosed) - head) <= 0;
  }

  static void rest(int tries) noexcept {
    if (tries < kPauses) {
      spin_pause();
    } else {
      std::this_thread::yield();
    }
  }

  alignas(kCacheLine) std::atomic<uint64_t> tail_{0};  // 2 x the next position to fill, + kClosed
  alignas(kCacheLine) std::atomic<uint64_t> head_{0};  // 2 x the next position to empty
  EventCount items_;                                   // consumers sleep here
  EventCount room_;                                    // producers sleep here
  alignas(kCacheLine) const size_t mask_;              // read-only from here on
  const std::unique_ptr<Cell[]> cells_;
};

}  // namespace quern
