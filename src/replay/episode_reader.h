// Follows an episode from row to row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/buffer.h"
#include "replay/row_copy.h"

namespace quern::replay {

// A row and its place; valid when it was read.
struct EpisodeRow {
  uint64_t id = kNoRow;
  Step step;
};

// Of a buffer with episodes, which must outlive it. Any thread; no lock, no allocation.
class EpisodeReader {
 public:
  explicit EpisodeReader(const ReplayBuffer& buffer) : buffer_(buffer), links_(*buffer.links()) {}

  // The place of row `id`. Also calls read(slot), to copy more of the row. False if the row is not in the buffer.
  template <typename Read>
  bool find(uint64_t id, EpisodeRow& row, Read read) const {
    row.id = id;
    return buffer_.ring().read(id, [&](uint64_t slot) {
      row.step = links_.load(slot);
      read(slot);
    });
  }
  bool find(uint64_t id, EpisodeRow& row) const {
    return find(id, row, [](uint64_t) {});
  }

  // Moves to the row after this one in the same episode. False if there is none, or it is not in the buffer.
  template <typename Read>
  bool follow(EpisodeRow& row, Read read) const {
    const uint64_t place = row.step.place + 1;
    return row.step.next != kNoRow && row.step.place != 0 && find(row.step.next, row, read) && row.step.place == place;
  }
  bool follow(EpisodeRow& row) const {
    return follow(row, [](uint64_t) {});
  }

  // Copies the columns that are not null, of row `id` if it still has this place, as row `index` of the arrays.
  bool copy(const EpisodeRow& row, std::span<std::byte* const> columns, size_t index) const {
    bool same = false;
    const bool there = buffer_.ring().read(row.id, [&](uint64_t slot) {
      same = links_.load(slot).place == row.step.place;
      for (size_t c = 0; same && c < columns.size(); ++c) {
        if (columns[c] != nullptr) buffer_.load(c, slot, columns[c] + index * buffer_.value_bytes(c));
      }
    });
    return there && same;
  }

  // Start to load into the cache: what find() reads, and the wanted columns, of row `id`.
  void prefetch_link(uint64_t id) const noexcept {
    if (id == kNoRow) return;
    buffer_.ring().prefetch(id);
    links_.prefetch(id % buffer_.capacity());
  }
  void prefetch(uint64_t id, std::span<std::byte* const> columns) const noexcept {
    if (id == kNoRow) return;
    const uint64_t slot = id % buffer_.capacity();
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c] != nullptr) prefetch_row(buffer_.stored(c, slot), buffer_.stored_bytes(c));
    }
  }

 private:
  const ReplayBuffer& buffer_;
  const Links& links_;
};

}  // namespace quern::replay
