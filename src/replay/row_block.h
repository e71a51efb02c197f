// A block of encoded rows of a buffer, one column after another: the unit of a snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned_buffer.h"
#include "replay/schema.h"

namespace quern::replay {

// One part of a block; packed separately from the others, because its bytes are similar.
struct BlockPart {
  size_t row_bytes = 0;
  size_t word = 1;  // size of the numbers in it, for the filter
};

// The parts of a block with this schema, in this order: weights (uint64, only if prioritised), gaps (uint32: number of
// rows missing between the first row of the block and this one), then the columns.
inline std::vector<BlockPart> block_parts(const Schema& schema, bool prioritised) {
  std::vector<BlockPart> parts;
  if (prioritised) parts.push_back({8, 8});
  parts.push_back({4, 4});
  for (const Column& column : schema.columns()) {
    parts.push_back({column.stored_bytes(), column.encoding == Encoding::kRaw ? size_of(column.dtype) : 1});
  }
  return parts;
}

// Rows per block: about 512 KiB, so that a block stays in the L2 cache between copying and packing. docs/replay.md has
// results for other sizes, with 50,000 rows of 49,924 bytes.
inline size_t block_rows(const Schema& schema) {
  constexpr size_t kBytes = size_t{512} << 10;
  constexpr size_t kMax = 65536;
  const size_t rows = kBytes / schema.stored_bytes();
  return rows < 1 ? 1 : rows < kMax ? rows : kMax;
}

// Memory for one block, reused for the next. One thread.
class RowBlock {
 public:
  RowBlock(const Schema& schema, bool prioritised, size_t max_rows)
      : parts_(block_parts(schema, prioritised)), prioritised_(prioritised) {
    size_t bytes = 0;
    for (const BlockPart& part : parts_) {
      starts_.push_back(bytes);
      bytes += (checked_bytes(max_rows, part.row_bytes) + kAlignment - 1) / kAlignment * kAlignment;
    }
    memory_ = AlignedBuffer<std::byte>(bytes);
  }

  const std::vector<BlockPart>& parts() const noexcept { return parts_; }
  std::span<std::byte> part(size_t p) noexcept { return {memory_.data() + starts_[p], rows * parts_[p].row_bytes}; }
  size_t first_column() const noexcept { return prioritised_ ? 2 : 1; }
  std::byte* column(size_t c) noexcept { return memory_.data() + starts_[first_column() + c]; }
  uint64_t* weights() noexcept { return prioritised_ ? reinterpret_cast<uint64_t*>(memory_.data()) : nullptr; }
  uint32_t* gaps() noexcept { return reinterpret_cast<uint32_t*>(memory_.data() + starts_[prioritised_ ? 1 : 0]); }

  uint64_t first_id = 0;
  size_t rows = 0;

 private:
  std::vector<BlockPart> parts_;
  std::vector<size_t> starts_;
  bool prioritised_;
  AlignedBuffer<std::byte> memory_;
};

}  // namespace quern::replay
