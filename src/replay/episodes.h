// Which rows follow each other in one episode.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "replay/forks.h"
#include "replay/ring.h"

namespace quern::replay {

// The place of a row: its episode and its step in it. Episodes are numbered from 1 by a counter that all processes
// share, so the rows of two actors never have the same place, and the row after `place` in its episode has place + 1.
// Place 0 is a row on its own. An episode of 2^20 rows continues under a new number, and the 2^44 numbers last 200 days
// at a million episodes per second.
inline constexpr int kStepBits = 20;
inline constexpr uint64_t kMaxSteps = uint64_t{1} << kStepBits;
inline constexpr uint64_t kMaxEpisodes = uint64_t{1} << (64 - kStepBits);
constexpr uint64_t episode_of(uint64_t place) { return place >> kStepBits; }
constexpr uint64_t step_of(uint64_t place) { return place & (kMaxSteps - 1); }

enum class End : uint8_t { kNone, kTerminal, kTruncated };

// One per slot. `place` belongs to the row: it is written and read under the slot's word, like the row's bytes. `next`
// is only a hint, the id of the row that follows: a writer stores it into the slot of its previous row, which another
// row may be taking over at that moment. So a reader believes it only if the row it leads to has place + 1. A wrong
// hint ends a sequence early; it cannot join rows of two episodes.
struct Link {
  std::atomic<uint64_t> place{0};
  std::atomic<uint64_t> next{0};  // 0: not known; id + 1; or how the episode ended, kNextTerminal or kNextTruncated
};
static_assert(sizeof(Link) == 16);
inline constexpr uint64_t kNextTerminal = ~uint64_t{0};
inline constexpr uint64_t kNextTruncated = ~uint64_t{0} - 1;

// A link as read.
struct Step {
  uint64_t place = 0;
  uint64_t next = kNoRow;  // the id to look at
  End end = End::kNone;
};

// The links of a buffer's slots. Any thread; no lock, no allocation.
class Links {
 public:
  Links(Link* memory, uint64_t capacity, std::atomic<uint64_t>* episodes) noexcept
      : memory_(memory), capacity_(capacity), episodes_(episodes) {}

  // Inside Ring::write() and Ring::read() of that slot's row.
  void store(uint64_t slot, uint64_t place, End end) const noexcept {
    const uint64_t next = end == End::kTerminal ? kNextTerminal : end == End::kTruncated ? kNextTruncated : 0;
    memory_[slot].place.store(place, std::memory_order_relaxed);
    memory_[slot].next.store(next, std::memory_order_relaxed);
  }
  Step load(uint64_t slot) const noexcept {
    const uint64_t next = memory_[slot].next.load(std::memory_order_acquire);
    const uint64_t place = memory_[slot].place.load(std::memory_order_relaxed);
    if (next == kNextTerminal) return {place, kNoRow, End::kTerminal};
    if (next == kNextTruncated) return {place, kNoRow, End::kTruncated};
    return {place, next - 1, End::kNone};  // 0 becomes kNoRow
  }

  // Stores the hint that `next` follows `id`, unless row `id` is gone.
  void connect(const Ring& ring, uint64_t id, uint64_t next) const noexcept {
    if (ring.holds(id)) memory_[id % capacity_].next.store(next + 1, std::memory_order_release);
  }

  uint64_t new_episodes(uint64_t count) const noexcept {
    return (episodes_->fetch_add(count, std::memory_order_relaxed) + 1) & (kMaxEpisodes - 1);
  }
  uint64_t episodes() const noexcept { return episodes_->load(std::memory_order_relaxed); }

  void prefetch(uint64_t slot) const noexcept { __builtin_prefetch(&memory_[slot]); }

 private:
  Link* memory_;
  uint64_t capacity_;
  std::atomic<uint64_t>* episodes_;
};

// Where an actor is in its episode.
struct Stream {
  uint64_t place = 0;  // of its next row; 0: that row begins an episode
  uint64_t last = kNoRow;
};

// The streams of one actor: row r of an add() belongs to stream r % streams. One thread at a time. A child of fork()
// that uses its parent's begins new episodes, so it never continues those of its parent.
class Streams {
 public:
  explicit Streams(size_t count) : streams_(count) {
    if (count == 0) throw Error("[replay] writer: streams: expected 1 or more, found 0");
  }

  // Error unless a batch of this many rows has as many for each stream.
  void expect_rows(size_t rows) const {
    if (rows % streams_.size() == 0) return;
    throw Error("[replay] writer: expected a multiple of {} rows, one for each stream, found {}", streams_.size(),
                rows);
  }

  std::span<Stream> get() {
    if (forks_ != fork_count()) reset();
    return streams_;
  }

  // The next row of every stream begins a new episode.
  void reset() {
    forks_ = fork_count();
    streams_.assign(streams_.size(), Stream{});
  }

 private:
  std::vector<Stream> streams_;
  uint64_t forks_ = fork_count();
};

}  // namespace quern::replay
