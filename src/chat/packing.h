// Packing: several short sequences share a row, so that less of a batch is padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quern::chat {

// Which sequences each row has, in order of their indexes.
class RowPlan {
 public:
  // `row_of`: the row of each sequence, below `rows`.
  RowPlan(std::span<const uint32_t> row_of, size_t rows);

  size_t size() const { return begins_.size() - 1; }
  std::span<const uint32_t> row(size_t index) const {
    return std::span(sequences_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }

 private:
  std::vector<uint32_t> sequences_;  // of row 0, row 1, ...
  std::vector<size_t> begins_;       // of each row, and the end
};

// First-fit decreasing: the sequences from the longest to the shortest (those of equal length in order of their
// indexes) go into the first row that has room. Uses at most 11/9 of the smallest possible number of rows, plus one.
// O(n log n): 1,000,000 sequences take about a second. Lengths are 1 ... capacity.
RowPlan pack_rows(std::span<const uint32_t> lengths, uint32_t capacity);

// One sequence per row, in order.
RowPlan one_per_row(size_t sequences);

}  // namespace quern::chat
