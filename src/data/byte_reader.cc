#include "data/byte_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace quern::data {

void ByteReader::skip(uint64_t count) {
  std::array<char, 1 << 15> bytes;
  while (count > 0) {
    const size_t got = read(std::span(bytes).first(std::min<uint64_t>(bytes.size(), count)));
    if (got == 0) return;
    count -= got;
  }
}

size_t FileReader::read(std::span<char> out) {
  if (used_ == block_.size()) {
    block_begin_ += block_.size();
    used_ = 0;
    file_->read(block_begin_, std::min(file_->size(), block_begin_ + kBlockBytes), block_);
  }
  const size_t count = std::min(out.size(), block_.size() - used_);
  std::memcpy(out.data(), block_.data() + used_, count);
  used_ += count;
  return count;
}

void FileReader::skip(uint64_t count) {
  block_begin_ = std::min(file_->size(), consumed() + count);
  block_.clear();
  used_ = 0;
}

bool read_until(ByteReader& reader, size_t size, std::string& out) {
  size_t filled = out.size();
  if (filled >= size) return true;
  out.resize(size);
  while (filled < size) {
    const size_t got = reader.read(std::span(out).subspan(filled));
    if (got == 0) break;
    filled += got;
  }
  out.resize(filled);
  return filled == size;
}

}  // namespace quern::data
