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

// A ring of cells after Dmitry Vyukov's bounded MPMC queue. A cell's sequence number says whose turn it is:
//
//   sequence == 2 p                 empty, waits for the producer of position p
//   sequence == 2 p + 1             holds item p, waits for the consumer of position p
//   sequence == 2 (p + capacity)    emptied: waits for the producer that comes one lap later
//
// so a cell is filled only after it was emptied and read only after it was filled. Counting in twos keeps the last two
// states apart for a capacity of 1 as well. The cursors count in twos too, which leaves bit 0 of the tail for `closed`:
// one compare-and-swap then both takes a position and proves that the queue is still open, so an item that push
// accepted always lies below the final tail, and consumers leave only once the head has reached that. Nothing that was
// accepted is lost, however close() races with it.
//
// Orders. A producer writes the item, then stores the cell's sequence with release; the consumer's acquire load of it
// in try_pop pairs with that. A consumer moves the item out, then releases the sequence; the acquire load in try_push
// of the next lap pairs with that. Cursors only hand out positions: reading them can be relaxed, because a stale one
// shows in the cell's sequence. The compare-and-swap of a cursor is seq_cst because it is the change that sleepers wait
// for (event_count.h): they look at the cursors and not at the cells, so publishing an item needs no second barrier. A
// waiter that sees a position taken whose cell is not ready yet does not sleep but tries again: the other side needs a
// few nanoseconds more, or gets our core by one of the yields.
//
// Any number of threads may call anything at any time, except the constructor and the destructor. Items of one producer
// reach one consumer in the order of their pushes. A push or a pop is one compare-and-swap and one store, without a
// system call while nobody sleeps. T must move without exceptions: there is no way back once a position was taken.
//
// Blocking calls try kTries times before they sleep. 16 pauses and 8 yields take about 4 us, what falling asleep and
// being woken costs. The yields let the other side work when threads outnumber cores, and spare it the calls that would
// wake us: 8 producers and 8 consumers on 2 cores pass ten times the items that they do with 64 pauses and no yield.
// Tests lower kTries.
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

  // Adds the item, unless the queue is full or closed: then returns false and leaves the item as it was. Also counts as
  // full while the consumer of the oldest position is still moving its item out.
  bool try_push(T&& item) noexcept {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cell_at(tail);
      // Closed makes the tail odd: one more than the cell can be, so it takes the way of full at no cost.
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
        tail = tail_.load(std::memory_order_relaxed);  // another producer was faster
      }
    }
  }

  // Takes the oldest item, unless the queue is empty. Also counts as empty while the producer of the oldest position is
  // still moving its item in.
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
        head = head_.load(std::memory_order_relaxed);  // another consumer was faster
      }
    }
  }

  // Adds the item, waiting for room as long as it takes. False, and the item left as it was, once the queue is closed.
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

  // Takes the oldest item, waiting for one as long as it takes. Empty once the queue is closed and drained.
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

  // From here on every push returns false; what is in the queue can still be popped. Wakes everyone. Again: no effect.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_seq_cst);
    items_.wake_all();
    room_.wake_all();
  }
  bool closed() const noexcept { return (tail_.load(std::memory_order_seq_cst) & kClosed) != 0; }

  size_t capacity() const noexcept { return mask_ + 1; }
  // Items in the queue at some moment during the call; for people, not for decisions.
  size_t size() const noexcept {
    const uint64_t head = head_.load(std::memory_order_seq_cst);
    const uint64_t tail = tail_.load(std::memory_order_seq_cst) & ~kClosed;
    return std::min<size_t>((tail - head) / 2, capacity());
  }

 private:
  // One item, or the room for one. On lines of its own: the neighbour is being used by another core.
  struct alignas(std::max(kCacheLine, alignof(T))) Cell {
    std::atomic<uint64_t> sequence;
    alignas(T) std::byte storage[sizeof(T)];
  };
  static_assert(sizeof(Cell) % kCacheLine == 0 && alignof(Cell) % kCacheLine == 0);
  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

  static constexpr uint64_t kClosed = 1;
  static constexpr int kPauses = 16;  // of the tries, about 0.6 us; the others yield

  static size_t checked(size_t capacity) {
    if (std::has_single_bit(capacity) && capacity <= kMaxCapacity) return capacity;
    throw Error("[queue] capacity: expected a power of two from 1 to {}, found {}", kMaxCapacity, capacity);
  }

  Cell& cell_at(uint64_t cursor) noexcept { return cells_[(cursor >> 1) & mask_]; }

  // The three below read the cursor of the other side last. Cursors only grow, so what they say was true at that last
  // load: a tail that was read earlier is not ahead of the real one, nor a head.
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
  alignas(kCacheLine) const size_t mask_;              // from here on only read
  const std::unique_ptr<Cell[]> cells_;
};

}  // namespace quern
