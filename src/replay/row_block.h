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

// What a block holds besides the columns.
struct BlockKind {
  bool prioritised = false;
  bool episodes = false;

  size_t gaps() const noexcept { return prioritised ? 1 : 0; }  // the number of that part
  size_t first_column() const noexcept { return gaps() + (episodes ? 2 : 1); }
};

// The parts of a block with this schema, in this order: weights (uint64, only if prioritised), gaps (uint32: number of
// rows missing between the first row of the block and this one), places (uint64, only with episodes; see episodes.h),
// then the columns.
inline std::vector<BlockPart> block_parts(const Schema& schema, const BlockKind& kind) {
  std::vector<BlockPart> parts;
  if (kind.prioritised) parts.push_back({8, 8});
  parts.push_back({4, 4});
  if (kind.episodes) parts.push_back({8, 8});
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
  RowBlock(const Schema& schema, const BlockKind& kind, size_t max_rows)
      : parts_(block_parts(schema, kind)), kind_(kind) {
    size_t bytes = 0;
    for (const BlockPart& part : parts_) {
      starts_.push_back(bytes);
      bytes += (checked_bytes(max_rows, part.row_bytes) + kAlignment - 1) / kAlignment * kAlignment;
    }
    memory_ = AlignedBuffer<std::byte>(bytes);
  }

  const std::vector<BlockPart>& parts() const noexcept { return parts_; }
  std::span<std::byte> part(size_t p) noexcept { return {memory_.data() + starts_[p], rows * parts_[p].row_bytes}; }
  const BlockKind& kind() const noexcept { return kind_; }
  size_t first_column() const noexcept { return kind_.first_column(); }
  std::byte* column(size_t c) noexcept { return memory_.data() + starts_[first_column() + c]; }
  uint64_t* weights() noexcept { return kind_.prioritised ? reinterpret_cast<uint64_t*>(memory_.data()) : nullptr; }
  uint32_t* gaps() noexcept { return reinterpret_cast<uint32_t*>(memory_.data() + starts_[kind_.gaps()]); }
  uint64_t* places() noexcept {
    return kind_.episodes ? reinterpret_cast<uint64_t*>(memory_.data() + starts_[kind_.gaps() + 1]) : nullptr;
  }

  uint64_t first_id = 0;
  size_t rows = 0;

 private:
  std::vector<BlockPart> parts_;
  std::vector<size_t> starts_;
  BlockKind kind_;
  AlignedBuffer<std::byte> memory_;
};

}  // namespace quern::replay
