// The file of a snapshot: header, packed blocks of rows, index. docs/formats.md describes the format.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/files.h"
#include "replay/block_codec.h"
#include "replay/row_block.h"
#include "replay/snapshot.h"

namespace quern::replay {

// The priority with this weight (sum_tree.h). With an alpha of 0 all priorities above 0 are equal; 1 is returned.
inline double priority_of(uint64_t weight, double alpha) {
  if (weight == 0) return 0;
  return alpha == 0 ? 1 : std::pow(std::ldexp(static_cast<double>(weight), -24), 1 / alpha);
}

struct BlockEntry {
  uint64_t first_id = 0;  // of its first row
  uint64_t bytes = 0;
  uint32_t rows = 0;
  uint32_t crc = 0;  // CRC-32C of its bytes
};
static_assert(sizeof(BlockEntry) == 24);

// Writes a snapshot from front to back. The file appears, complete, in finish(), or never.
class SnapshotWriter {
 public:
  SnapshotWriter(const std::filesystem::path& path, const SnapshotInfo& info);

  void write(const BlockEntry& entry, std::span<const std::byte> packed);
  uint64_t finish(uint64_t skipped);  // returns the size of the file

 private:
  AtomicFile file_;
  uint32_t header_crc_ = 0;
  std::vector<BlockEntry> index_;
};

// An open snapshot. Header and index are checked, so that all sizes in them are valid; the blocks are not checked until
// verify(). The file is read, not mapped, so that truncating it meanwhile is an Error. A change after verify() is an
// Error in unpack(), which checks the checksum again on the bytes that it unpacks. Any thread.
class SnapshotReader {
 public:
  // Error: no file, not a snapshot, another version, truncated, damaged.
  explicit SnapshotReader(const std::filesystem::path& path);

  const SnapshotInfo& info() const noexcept { return info_; }
  const std::vector<BlockEntry>& blocks() const noexcept { return index_; }
  size_t max_rows() const noexcept { return max_rows_; }  // of a block

  // Verifies the checksums of all blocks, with this many threads. Error naming the first bad block.
  void verify(size_t threads) const;

  // Unpacks part `part` of a block to `out`, which is block.rows * row_bytes. Error when that fails. Reads no more than
  // it needs and so checks no checksum: the result is valid if a later verify() succeeds.
  void unpack_part(size_t block, size_t part, BlockCodec& codec, std::span<std::byte> out) const;

  // Unpacks the entire block except the gaps. Error when that fails, or when the checksum is wrong.
  void unpack(size_t block, BlockCodec& codec, RowBlock& out) const;

 private:
  SnapshotInfo read_header();
  void read_index();
  void check_index(uint64_t bytes, uint64_t rows);
  void read(uint64_t offset, std::span<std::byte> out) const;
  std::span<const std::byte> packed(size_t block, BlockCodec& codec) const;  // Error when the checksum is wrong
  uint64_t max_packed(size_t rows) const;
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;
  [[noreturn]] void bad_block(size_t block) const;

  std::filesystem::path path_;
  Descriptor file_;
  uint64_t bytes_;
  size_t header_bytes_ = 0;
  uint32_t header_crc_ = 0;
  size_t max_rows_ = 0;
  SnapshotInfo info_;  // declared after the members that read_header() uses and sets
  std::vector<BlockPart> parts_;
  std::vector<BlockEntry> index_;
  std::vector<uint64_t> offsets_;
};

}  // namespace quern::replay
