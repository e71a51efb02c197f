// A column of a block of rows, packed: filtered where two values make up most of it, then LZ4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "replay/word_filter.h"

namespace quern::replay {

// One thread at a time; keeps its working memory between calls.
//
// Packed bytes are pieces of at most kPiece raw bytes, each with a header of 32: uint32 packed size, uint32 filtered
// size, uint8 filter (0 none, 1 one value, 2 two values), uint8 compression (0 none, 1 LZ4 block), uint8 word size,
// five zeros, uint64 common value, uint64 second value (zero where there is none). Little endian.
class BlockCodec {
 public:
  static constexpr size_t kPiece = size_t{4} << 20;  // bounds the working memory, however large a row is

  // Acceleration of LZ4: 1 packs best, more is faster.
  explicit BlockCodec(int acceleration = 1);

  // The most that `bytes` may become.
  static size_t max_packed(size_t bytes) noexcept;

  // Returns the packed size; `out` has room for max_packed(). `word` is the size of the numbers in `raw`, a divisor of
  // its size: 1, 2, 4 or 8. Lossless for any bytes.
  size_t pack(std::span<const std::byte> raw, size_t word, std::byte* out);

  // Takes from the front of `packed` what pack() made of raw.size() bytes, and writes these. False when it is damaged:
  // `raw` may be anything then. Safe for any bytes.
  bool unpack(std::span<const std::byte>& packed, size_t word, std::span<std::byte> raw);

  // Takes the same from the front without unpacking it.
  static bool skip(std::span<const std::byte>& packed, size_t bytes) noexcept;

  // For those who have packed bytes elsewhere: pieces that `bytes` become, bytes of the header of a piece, and those of
  // the piece with it, any number up to 2^32 + 31 if the header is damaged.
  static constexpr size_t kPieceHeader = 32;
  static constexpr size_t pieces(size_t bytes) noexcept { return (bytes + kPiece - 1) / kPiece; }
  static size_t piece_bytes(std::span<const std::byte, kPieceHeader> header) noexcept;

  // Memory for so many packed bytes, until the next call.
  std::span<std::byte> room(size_t bytes);

 private:
  size_t pack_piece(std::span<const std::byte> raw, size_t word, std::byte* out);
  bool unpack_piece(std::span<const std::byte>& packed, size_t word, std::span<std::byte> raw);

  int acceleration_;
  AlignedBuffer<std::byte> filtered_;
  AlignedBuffer<std::byte> state_;  // of LZ4
  AlignedBuffer<std::byte> room_;
};

}  // namespace quern::replay
