// The rows of a replay buffer: written and read by any number of threads and processes concurrently, and never seen
// half-written.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cache_line.h"
#include "replay/row_copy.h"
#include "replay/slot_word.h"
#include "replay/writers.h"

namespace quern::replay {

// Rows have ids 0, 1, 2, ... in the order in which they were reserved; row `id` is in slot id % capacity. Every slot
// has a word that describes its contents (slot_word.h), and that alone decides which thread may write.
//
// Write: id = reserved.fetch_add(n); for each row, a compare-and-swap changes the word from that of an older row (or 0)
// to "being written by this process", the bytes are copied, and a release store changes the word to "complete".
//   - The word already holds a newer row: this row would have been overwritten by now. Nothing to do.
//   - The word says that an older row is still being written (its writer is a full lap behind, or was killed): this
//     thread does not wait. If that process is dead, the slot is taken over; otherwise this row is written under a
//     newly reserved id. Each thread holds one slot at a time, so a ring with more slots than writing threads always
//     has a free slot among the next ones.
// Read: load the word (acquire), copy, fence, load it again: if both loads see the same complete row, no byte of the
// copy belongs to another row.
//
// A process that is killed loses the rows it had not finished. Slots that it had reserved but not started to write
// still hold the older row, whose id is then outside the window, so it is not sampled. The same holds for the rows that
// other threads were writing to private memory when fork() copied it: the child has the slots but not the threads.
//
// Words and counters may be in shared memory and hold arbitrary values: slots are always taken modulo the capacity, ids
// that do not fit in a word are rejected, and a ring whose slots all appear busy is an Error after some seconds.

// Counters that all processes write, each on its own cache line, at the start of the memory.
struct alignas(kCacheLine) Counter {
  std::atomic<uint64_t> value{0};
  std::atomic<uint64_t> second{0};  // 0 in buffers of before it had a meaning; see CounterIndex
};
static_assert(sizeof(Counter) == kCacheLine && std::atomic<uint64_t>::is_always_lock_free);

struct Window {
  uint64_t begin = 0;  // ids begin ... end - 1 may be readable
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

inline constexpr uint64_t kNoRow = ~uint64_t{0};

// Only the protocol: it handles slots and words; its callers copy the bytes (with row_copy.h). Any thread, any process;
// no lock, no allocation. The memory belongs to the caller and must outlive the ring.
class Ring {
 public:
  // The parts of the memory used by the ring; all zeros are an empty ring.
  struct Parts {
    Counter* reserved = nullptr;
    Counter* published = nullptr;
    std::atomic<uint64_t>* words = nullptr;    // `capacity` of them
    std::atomic<uint64_t>* cleared = nullptr;  // rows with ids below this one are gone; null: never cleared
  };

  static constexpr double kPatience = 10;  // seconds

  // `writers` identifies the writing processes and tells which are alive; null if all writers are threads of one
  // process, or of its ancestors before a fork() counted by watch_forks(). `patience` is how long write() searches for
  // a slot that is not busy.
  Ring(const Parts& parts, uint64_t capacity, Writers* writers = nullptr, double patience = kPatience) noexcept
      : parts_(parts), capacity_(capacity), writers_(writers), patience_(patience) {}

  uint64_t capacity() const noexcept { return capacity_; }

  // Total number of rows written, including those that came a lap late and were overwritten before they were stored.
  uint64_t published() const noexcept { return parts_.published->value.load(std::memory_order_acquire); }

  Window window() const noexcept {
    const uint64_t end = parts_.reserved->value.load(std::memory_order_acquire);
    return {std::max(end > capacity_ ? end - capacity_ : 0, std::min(cleared(), end)), end};
  }

  // Rows with smaller ids were removed by clear(). On a cache line that is hardly ever written.
  uint64_t cleared() const noexcept {
    return parts_.cleared == nullptr ? 0 : parts_.cleared->load(std::memory_order_acquire);
  }

  // Removes all rows whose ids are reserved by now, with a single store: from then on no process reads one of them,
  // not even one that is being written. Then calls empty(slot) for each slot with such a row, while this process holds
  // it. A row that is being written meanwhile keeps its slot, and cannot be read. `cleared` must not be null.
  template <typename Empty>
  void clear(Empty empty);

  // The first of that many new ids. Error when this process has no index yet and none is free (see Writers), or when
  // the ids are used up, which takes years or a damaged counter.
  uint64_t reserve(uint64_t rows) {
    if (writers_ != nullptr) writers_->me();
    const uint64_t first = parts_.reserved->value.fetch_add(rows, std::memory_order_relaxed);  // words order rows
    if (first >= kEndOfIds || rows > kEndOfIds - first) no_more_ids(first);
    return first;
  }

  // Calls copy(slot) to write the row and marks the row complete. Returns the id it is stored under: `id`, a newer one
  // if the slot of `id` was still being written, or kNoRow if `id` is older than the entire ring. Error when the ids
  // are used up, or when every slot is busy for longer than the patience; then nothing was written.
  template <typename Copy>
  uint64_t write(uint64_t id, Copy copy) {
    const uint64_t written = claim(id, me());
    if (written != kNoRow) {
      const uint64_t slot = written % capacity_;
      before_row_writes();
      copy(slot);
      parts_.words[slot].store(complete_word(written), std::memory_order_release);  // pairs with the acquire in read()
    }
    parts_.published->value.fetch_add(1, std::memory_order_release);
    return written;
  }

  // Calls copy(slot) to read the row. False if the row is not in the ring, or was overwritten meanwhile: discard the
  // copy then. Any id is allowed; the word of one beyond kEndOfIds would be that of another row, or of an empty slot.
  template <typename Copy>
  bool read(uint64_t id, Copy copy) const {
    if (id >= kEndOfIds || id < cleared()) return false;
    const uint64_t slot = id % capacity_;
    if (parts_.words[slot].load(std::memory_order_acquire) != complete_word(id)) return false;
    copy(slot);
    after_row_reads();
    return parts_.words[slot].load(std::memory_order_relaxed) == complete_word(id);
  }

  // After a crash of the machine, pages of a file may be from different moments. If the counters were behind the words,
  // writers would treat new rows as older than the ring.
  void catch_up() noexcept;

  // Whether the row is in the ring now.
  bool holds(uint64_t id) const noexcept {
    return id < kEndOfIds && id >= cleared() &&
           parts_.words[id % capacity_].load(std::memory_order_acquire) == complete_word(id);
  }

  void prefetch(uint64_t id) const noexcept { __builtin_prefetch(&parts_.words[id % capacity_]); }

  // The id of the complete row in this slot, or kNoRow.
  uint64_t id_in(uint64_t slot) const noexcept {
    const uint64_t word = parts_.words[slot].load(std::memory_order_acquire);
    return word == 0 || is_busy(word) ? kNoRow : order_of(word) - 1;
  }

 private:
  uint64_t claim(uint64_t id, uint16_t me);
  bool is_dead(uint16_t writer, uint16_t me) const {
    return writers_ == nullptr ? writer != me : writers_->is_dead(writer);
  }
  [[noreturn]] static void no_more_ids(uint64_t id);

  uint16_t me() { return writers_ == nullptr ? static_cast<uint16_t>(fork_count()) : writers_->me(); }
  static void raise(std::atomic<uint64_t>& counter, uint64_t value) noexcept {
    uint64_t found = counter.load(std::memory_order_relaxed);
    while (found < value && !counter.compare_exchange_weak(found, value, std::memory_order_acq_rel)) {
    }
  }

  Parts parts_;
  uint64_t capacity_;
  Writers* writers_;
  double patience_;
};

template <typename Empty>
void Ring::clear(Empty empty) {
  const uint16_t mine = me();
  const uint64_t end = parts_.reserved->value.load(std::memory_order_acquire);
  raise(parts_.published->second, published());
  raise(*parts_.cleared, end);
  for (uint64_t slot = 0; slot < capacity_; ++slot) {
    uint64_t word = parts_.words[slot].load(std::memory_order_relaxed);
    if (word == 0 || is_busy(word) || order_of(word) > end) continue;
    const uint64_t busy = busy_word(order_of(word) - 1, mine);
    if (!parts_.words[slot].compare_exchange_strong(word, busy, std::memory_order_acquire)) continue;
    before_row_writes();
    empty(slot);
    parts_.words[slot].store(0, std::memory_order_release);
  }
}

}  // namespace quern::replay
