#include "replay/ring.h"

#include <algorithm>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace quern::replay {

void Ring::no_more_ids(uint64_t id) {
  throw Error(
      "[replay] add: expected a row id below {}, found {}: the counter of the buffer is damaged; create a new buffer",
      kEndOfIds, id);
}

// Claims a slot, starting at `id`, and returns its id; kNoRow if the slot already has a newer row.
uint64_t Ring::claim(uint64_t id, uint16_t me) {
  double deadline = 0;
  for (uint64_t busy_slots = 0;; ++busy_slots) {
    if (id >= kEndOfIds) no_more_ids(id);
    std::atomic<uint64_t>& word = parts_.words[id % capacity_];
    uint64_t found = word.load(std::memory_order_relaxed);
    while (true) {
      if (order_of(found) > id + 1) return kNoRow;
      if (is_busy(found) && !is_dead(writer_of(found), me)) break;
      // Acquire: this row's bytes are written after those of the previous row. On failure `found` is the new word.
      if (word.compare_exchange_weak(found, busy_word(id, me), std::memory_order_acquire, std::memory_order_relaxed)) {
        return id;
      }
    }
    // All slots of a ring with fewer slots than writing threads may be busy; then let those threads run.
    if (busy_slots >= 4) std::this_thread::yield();
    if (busy_slots % 256 == 255) {
      const double now = seconds_now();
      if (deadline == 0) deadline = now + patience_;
      if (now > deadline) {
        throw Error(
            "[replay] add: expected a slot that is not being written within {} seconds, found none of {}; make the "
            "buffer larger than the number of threads that add, or create a new one if it is damaged",
            patience_, capacity_);
      }
    }
    id = parts_.reserved->value.fetch_add(1, std::memory_order_relaxed);
  }
}

void Ring::catch_up() noexcept {
  uint64_t end = cleared();
  for (uint64_t slot = 0; slot < capacity_; ++slot) {
    end = std::max(end, order_of(parts_.words[slot].load(std::memory_order_relaxed)));
  }
  if (parts_.reserved->value.load(std::memory_order_relaxed) >= end) return;  // always, except after a crash
  for (Counter* counter : {parts_.reserved, parts_.published}) {
    uint64_t found = counter->value.load(std::memory_order_relaxed);
    while (found < end && !counter->value.compare_exchange_weak(found, end, std::memory_order_relaxed)) {
    }
  }
}

}  // namespace quern::replay
