#include "replay/block_codec.h"

#include <lz4.h>

#include <algorithm>
#include <cstring>

namespace quern::replay {
namespace {

struct Header {
  uint32_t packed = 0;
  uint32_t filtered = 0;
  uint8_t filter = 0;
  uint8_t compression = 0;
  uint8_t word = 0;
  uint8_t zeros[5] = {};
  uint64_t common = 0;
  uint64_t second = 0;
};
static_assert(sizeof(Header) == BlockCodec::kPieceHeader);

constexpr size_t kMaxFiltered = BlockCodec::kPiece + BlockCodec::kPiece / 4;  // two mask bits per one-byte word
static_assert(kMaxFiltered < LZ4_MAX_INPUT_SIZE);

// The largest fraction of other words at which filtering beats LZ4 alone. At one half, LZ4 has half as much to read.
// But LZ4 is good at single bytes, and packing them breaks up repetitions.
double max_rest(size_t word) { return word == 1 ? 0.125 : 0.5; }

WordFilter filter_of(const Header& header) {
  return {.word = header.word, .common = header.common, .second = header.second, .two = header.filter == 2};
}

bool takes_more_than(uint64_t value, size_t bytes) { return bytes < 8 && value >> (8 * bytes) != 0; }

bool makes_sense(const Header& header, size_t word, size_t bytes) {
  constexpr uint8_t kZeros[5] = {};
  if (header.word != word || header.filter > 2 || header.compression > 1) return false;
  if (std::memcmp(header.zeros, kZeros, sizeof kZeros) != 0) return false;
  if (header.compression == 0 && header.packed != header.filtered) return false;
  if (takes_more_than(header.common, word) || takes_more_than(header.second, word)) return false;
  if (header.filter < 2 && header.second != 0) return false;
  if (header.filter == 0) return header.common == 0 && header.filtered == bytes;
  return header.filtered <= filter_of(header).max_filtered(bytes);
}

const char* chars(const std::byte* bytes) { return reinterpret_cast<const char*>(bytes); }
char* chars(std::byte* bytes) { return reinterpret_cast<char*>(bytes); }

}  // namespace

BlockCodec::BlockCodec(int acceleration) : acceleration_(acceleration) {}

size_t BlockCodec::max_packed(size_t bytes) noexcept {
  const size_t filtered = bytes + bytes / 4 + pieces(bytes) * 16;
  return filtered + filtered / 255 + pieces(bytes) * (sizeof(Header) + 16);  // LZ4_compressBound of each piece
}

size_t BlockCodec::pack(std::span<const std::byte> raw, size_t word, std::byte* out) {
  if (state_.empty()) state_ = AlignedBuffer<std::byte>(static_cast<size_t>(LZ4_sizeofState()));
  size_t size = 0;
  for (; !raw.empty(); raw = raw.subspan(std::min(kPiece, raw.size()))) {
    size += pack_piece(raw.first(std::min(kPiece, raw.size())), word, out + size);
  }
  return size;
}

size_t BlockCodec::pack_piece(std::span<const std::byte> raw, size_t word, std::byte* out) {
  Header header;
  header.word = static_cast<uint8_t>(word);
  const FilterChoice choice = choose_filter(raw.data(), raw.size(), word);
  const std::byte* source = raw.data();
  size_t size = raw.size();
  if (choice.rest <= max_rest(word)) {
    if (filtered_.empty()) filtered_ = AlignedBuffer<std::byte>(kMaxFiltered);
    size = filter_words(choice.filter, source, size, filtered_.data());
    source = filtered_.data();
    header.filter = choice.filter.two ? 2 : 1;
    header.common = choice.filter.common;
    header.second = choice.filter.second;
  }
  const auto length = static_cast<int>(size);
  const int packed = LZ4_compress_fast_extState(state_.data(), chars(source), chars(out + sizeof header), length,
                                                LZ4_compressBound(length), acceleration_);
  header.filtered = static_cast<uint32_t>(size);
  header.compression = packed > 0 && packed < length ? 1 : 0;
  header.packed = header.compression == 1 ? static_cast<uint32_t>(packed) : header.filtered;
  if (header.compression == 0) std::memcpy(out + sizeof header, source, size);
  std::memcpy(out, &header, sizeof header);
  return sizeof header + header.packed;
}

bool BlockCodec::unpack(std::span<const std::byte>& packed, size_t word, std::span<std::byte> raw) {
  for (; !raw.empty(); raw = raw.subspan(std::min(kPiece, raw.size()))) {
    if (!unpack_piece(packed, word, raw.first(std::min(kPiece, raw.size())))) return false;
  }
  return true;
}

bool BlockCodec::unpack_piece(std::span<const std::byte>& packed, size_t word, std::span<std::byte> raw) {
  Header header;
  if (packed.size() < sizeof header) return false;
  std::memcpy(&header, packed.data(), sizeof header);
  packed = packed.subspan(sizeof header);
  if (!makes_sense(header, word, raw.size()) || packed.size() < header.packed) return false;
  const std::byte* source = packed.data();
  packed = packed.subspan(header.packed);
  std::byte* target = raw.data();
  if (header.filter != 0 && header.compression == 1) {
    if (filtered_.empty()) filtered_ = AlignedBuffer<std::byte>(kMaxFiltered);
    target = filtered_.data();
  }
  if (header.compression == 1) {
    const auto size = static_cast<int>(header.filtered);
    if (LZ4_decompress_safe(chars(source), chars(target), static_cast<int>(header.packed), size) != size) return false;
    source = target;
  } else if (header.filter == 0) {
    std::memcpy(target, source, raw.size());
  }
  if (header.filter == 0) return true;
  return unfilter_words(filter_of(header), source, header.filtered, raw.data(), raw.size());
}

bool BlockCodec::skip(std::span<const std::byte>& packed, size_t bytes) noexcept {
  for (size_t left = pieces(bytes); left > 0; --left) {
    if (packed.size() < kPieceHeader) return false;
    const size_t piece = piece_bytes(packed.first<kPieceHeader>());
    if (packed.size() < piece) return false;
    packed = packed.subspan(piece);
  }
  return true;
}

size_t BlockCodec::piece_bytes(std::span<const std::byte, kPieceHeader> header) noexcept {
  Header found;
  std::memcpy(&found, header.data(), sizeof found);
  return sizeof found + size_t{found.packed};
}

std::span<std::byte> BlockCodec::room(size_t bytes) {
  if (room_.size() < bytes) room_ = AlignedBuffer<std::byte>(bytes);
  return room_.span().first(bytes);
}

}  // namespace quern::replay
