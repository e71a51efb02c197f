// The rows of a replay buffer: written by any number of threads and processes at once, read by any number, and never
// seen half-written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cache_line.h"
#include "replay/schema.h"

namespace quern::replay {

// Rows have ids 0, 1, 2, ... in the order in which they were reserved; row `id` lies in slot id % capacity. Every slot
// has a word that tells what lies in it, and which alone decides who may write:
//
//   0                                   nothing yet
//   (id + 1) << 1                       row `id`, whole
//   (id + 1) << 1 | 1 | writer << 48    row `id` is being written by the process `writer`
//
// Write: id = reserved.fetch_add(n); for each row, the word goes by compare-and-swap from an older row's (or 0) to
// "being written by us", the bytes are copied, the word becomes "whole" by a release store.
//   - The word holds a newer row already: ours would have been overwritten by now. Nothing to do.
//   - The word says that an older row is still being written (its writer is a whole lap behind, or was killed): nobody
//     waits. If that process is dead the slot is taken over; else our row goes to a new id, reserved for it.
// Read: load the word (acquire), copy, fence, load it again: the same whole row both times means that no byte of the
// copy is of another row.
//
// A process that is killed loses the rows it had not finished. Slots that it had reserved and not begun keep the older
// row, whose id is outside of the window then, so that nobody samples it.

// Counters that everyone writes, each on its own cache line, at the start of the memory.
struct alignas(kCacheLine) Counter {
  std::atomic<uint64_t> value{0};
};

struct Window {
  uint64_t begin = 0;  // ids begin ... end - 1 may be readable
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

inline constexpr uint64_t kNoRow = ~uint64_t{0};

// The protocol alone: it knows slots and words, its callers copy the bytes. Any thread, any process; no lock, no
// allocation. The memory is the caller's and outlives this.
class Ring {
 public:
  // What of the memory the ring works on; zeros make an empty ring.
  struct Parts {
    Counter* reserved = nullptr;
    Counter* published = nullptr;
    std::atomic<uint64_t>* words = nullptr;  // `capacity` of them
  };

  uint64_t capacity() const noexcept;
  uint64_t published() const noexcept;  // rows that became whole, ever
  Window window() const noexcept;

  uint64_t reserve(uint64_t rows) noexcept;  // the first of that many new ids

  // Makes copy(slot) write the row, and the row whole. Returns the id under which it lies there: `id`, a newer one if
  // the slot of `id` was still being written, or kNoRow if `id` is older than the whole ring. The same for every target
  // of copy.
  template <typename Copy>
  uint64_t write(uint64_t id, Copy copy);

  // Makes copy(slot) read the row; false if it is not there, or was overwritten meanwhile: what copy read is rubbish
  // then.
  template <typename Copy>
  bool read(uint64_t id, Copy copy) const;

  uint64_t id_in(uint64_t slot) const noexcept;  // of the whole row in this slot, or kNoRow
};

}  // namespace quern::replay
