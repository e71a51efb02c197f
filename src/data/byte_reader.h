// Bytes that can only be read from front to back: a file, or what a decompressor or decoder makes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/steady_file.h"

namespace quern::data {

class ByteReader {
 public:
  ByteReader() = default;
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  virtual ~ByteReader() = default;

  // Fills the start of `out`, which is not empty, and returns how many bytes: at least 1, or 0 at the end.
  virtual size_t read(std::span<char> out) = 0;

  // How many bytes of the file have been used so far.
  virtual uint64_t consumed() const = 0;

  // Skips `count` bytes, or all if there are fewer. Costs as much as reading them.
  virtual void skip(uint64_t count);
};

// Reads in blocks, each of which verifies that the file has not changed (core/steady_file.h).
class FileReader final : public ByteReader {
 public:
  explicit FileReader(const SteadyFile& file) : file_(&file) {}  // `file` must outlive this object

  size_t read(std::span<char> out) override;
  uint64_t consumed() const override { return block_begin_ + used_; }
  void skip(uint64_t count) override;

 private:
  static constexpr uint64_t kBlockBytes = uint64_t{256} << 10;

  const SteadyFile* file_;
  std::string block_;
  uint64_t block_begin_ = 0;
  size_t used_ = 0;  // of the block
};

// Appends bytes to `out` until it has `size` or the reader is at its end. Returns whether it has.
bool read_until(ByteReader& reader, size_t size, std::string& out);

}  // namespace quern::data
