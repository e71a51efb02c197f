#include "chat/packing.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

namespace quern::chat {
namespace {

// The free space of rows that are all empty at first, and for each node of a binary tree above them the largest below.
class FreeSpace {
 public:
  FreeSpace(size_t rows, uint32_t capacity)
      : leaves_(std::bit_ceil(std::max<size_t>(rows, 1))), largest_(2 * leaves_, capacity) {}

  // Takes `length` of the first row with that much room, and returns that row.
  size_t take(uint32_t length) {
    size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (largest_[node] < length) ++node;
    }
    assert(largest_[node] >= length);
    largest_[node] -= length;
    const size_t row = node - leaves_;
    while (node > 1) {
      node /= 2;
      largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
    }
    return row;
  }

 private:
  size_t leaves_;
  std::vector<uint32_t> largest_;  // node n has the children 2 n and 2 n + 1; leaves are rows
};

}  // namespace

RowPlan::RowPlan(std::span<const uint32_t> row_of, size_t rows) : sequences_(row_of.size()), begins_(rows + 1, 0) {
  for (const uint32_t row : row_of) ++begins_[row + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
  for (size_t i = 0; i < row_of.size(); ++i) sequences_[next[row_of[i]]++] = static_cast<uint32_t>(i);
}

RowPlan pack_rows(std::span<const uint32_t> lengths, uint32_t capacity) {
  assert(std::ranges::all_of(lengths, [&](uint32_t length) { return length >= 1 && length <= capacity; }));
  std::vector<uint32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });
  FreeSpace space(lengths.size(), capacity);
  std::vector<uint32_t> row_of(lengths.size());
  size_t rows = 0;
  for (const uint32_t sequence : order) {
    row_of[sequence] = static_cast<uint32_t>(space.take(lengths[sequence]));
    rows = std::max<size_t>(rows, row_of[sequence] + size_t{1});
  }
  return RowPlan(row_of, rows);
}

RowPlan one_per_row(size_t sequences) {
  std::vector<uint32_t> row_of(sequences);
  std::iota(row_of.begin(), row_of.end(), 0u);
  return RowPlan(row_of, sequences);
}

}  // namespace quern::chat
