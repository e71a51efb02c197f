// The rows of a replay buffer: written by any number of threads and processes at once, read by any number, and never
// seen half-written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cache_line.h"
#include "replay/row_copy.h"
#include "replay/slot_word.h"
#include "replay/writers.h"

namespace quern::replay {

// Rows have ids 0, 1, 2, ... in the order in which they were reserved; row `id` lies in slot id % capacity. Every slot
// has a word that tells what lies in it (slot_word.h), and which alone decides who may write.
//
// Write: id = reserved.fetch_add(n); for each row, the word goes by compare-and-swap from an older row's (or 0) to
// "being written by us", the bytes are copied, the word becomes "whole" by a release store.
//   - The word holds a newer row already: ours would have been overwritten by now. Nothing to do.
//   - The word says that an older row is still being written (its writer is a whole lap behind, or was killed): nobody
//     waits. If that process is dead the slot is taken over; else our row goes to a new id, reserved for it. Each
//     thread holds one slot at a time, so a ring with more slots than writing threads always has a free one among the
//     next.
// Read: load the word (acquire), copy, fence, load it again: the same whole row both times means that no byte of the
// copy is of another row.
//
// A process that is killed loses the rows it had not finished. Slots that it had reserved and not begun keep the older
// row, whose id is outside of the window then, so that nobody samples it. The same holds for the rows that other
// threads were writing to private memory when fork() copied it: the child has the slots and not the threads.
//
// Words and counters may lie in shared memory and hold anything: slots are always taken modulo the capacity, ids that
// no word can hold are refused, and a ring whose slots are all said to be busy is an Error after some seconds.

// Counters that everyone writes, each on its own cache line, at the start of the memory.
struct alignas(kCacheLine) Counter {
  std::atomic<uint64_t> value{0};
};
static_assert(sizeof(Counter) == kCacheLine && std::atomic<uint64_t>::is_always_lock_free);

struct Window {
  uint64_t begin = 0;  // ids begin ... end - 1 may be readable
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

inline constexpr uint64_t kNoRow = ~uint64_t{0};

// The protocol alone: it knows slots and words, its callers copy the bytes (with row_copy.h). Any thread, any process;
// no lock, no allocation. The memory is the caller's and outlives this.
class Ring {
 public:
  // What of the memory the ring works on; zeros make an empty ring.
  struct Parts {
    Counter* reserved = nullptr;
    Counter* published = nullptr;
    std::atomic<uint64_t>* words = nullptr;  // `capacity` of them
  };

  static constexpr double kPatience = 10;  // seconds

  // `writers` says who writes and who is still alive; null where all are threads of one process, and of its parents
  // before a fork() that watch_forks() has counted. `patience` is how long write() looks for a slot that is not busy.
  Ring(const Parts& parts, uint64_t capacity, Writers* writers = nullptr, double patience = kPatience) noexcept
      : parts_(parts), capacity_(capacity), writers_(writers), patience_(patience) {}

  uint64_t capacity() const noexcept { return capacity_; }

  // Rows that were written, ever; with those that were a lap late and so overwritten before they were there.
  uint64_t published() const noexcept { return parts_.published->value.load(std::memory_order_acquire); }

  Window window() const noexcept {
    const uint64_t end = parts_.reserved->value.load(std::memory_order_acquire);
    return {end > capacity_ ? end - capacity_ : 0, end};
  }

  // The first of that many new ids. Error when this process cannot be told from others yet (see Writers) and no more
  // processes can be, and when there are no more ids, which takes years or a damaged counter.
  uint64_t reserve(uint64_t rows) {
    if (writers_ != nullptr) writers_->me();
    const uint64_t first = parts_.reserved->value.fetch_add(rows, std::memory_order_relaxed);  // the words order all
    if (first >= kEndOfIds || rows > kEndOfIds - first) no_more_ids(first);
    return first;
  }

  // Makes copy(slot) write the row, and the row whole. Returns the id under which it lies there: `id`, a newer one if
  // the slot of `id` was still being written, or kNoRow if `id` is older than the whole ring. Error when there are no
  // more ids, or when every slot is busy for longer than the patience; then nothing was written.
  template <typename Copy>
  uint64_t write(uint64_t id, Copy copy) {
    const uint16_t me = writers_ == nullptr ? static_cast<uint16_t>(fork_count()) : writers_->me();
    const uint64_t written = claim(id, me);
    if (written != kNoRow) {
      const uint64_t slot = written % capacity_;
      before_row_writes();
      copy(slot);
      parts_.words[slot].store(whole_word(written), std::memory_order_release);  // pairs with the acquire in read()
    }
    parts_.published->value.fetch_add(1, std::memory_order_release);
    return written;
  }

  // Makes copy(slot) read the row; false if it is not there, or was overwritten meanwhile: what copy read is rubbish
  // then. Any number may be asked for: beyond kEndOfIds its word would be that of another row, or of an empty slot.
  template <typename Copy>
  bool read(uint64_t id, Copy copy) const {
    if (id >= kEndOfIds) return false;
    const uint64_t slot = id % capacity_;
    if (parts_.words[slot].load(std::memory_order_acquire) != whole_word(id)) return false;
    copy(slot);
    after_row_reads();
    return parts_.words[slot].load(std::memory_order_relaxed) == whole_word(id);
  }

  // After a crash of the machine, pages of a file may be of different moments. Counters that are behind the words would
  // let writers take new rows for older than the ring.
  void catch_up() noexcept;

  // Whether the row is there now.
  bool holds(uint64_t id) const noexcept {
    return id < kEndOfIds && parts_.words[id % capacity_].load(std::memory_order_acquire) == whole_word(id);
  }

  // Of the whole row in this slot, or kNoRow.
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

  Parts parts_;
  uint64_t capacity_;
  Writers* writers_;
  double patience_;
};

}  // namespace quern::replay
