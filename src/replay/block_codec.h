// Compression of one column of a block of rows: a filter if one or two values make up most of it, then LZ4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "replay/word_filter.h"

namespace quern::replay {

// One thread at a time; reuses its working memory between calls.
//
// Packed bytes are pieces of at most kPiece raw bytes, each with a header of 32: uint32 packed size, uint32 filtered
// size, uint8 filter (0 none, 1 one value, 2 two values), uint8 compression (0 none, 1 LZ4 block), uint8 word size,
// five zeros, uint64 common value, uint64 second value (zero if there is none). Little endian.
class BlockCodec {
 public:
  static constexpr size_t kPiece = size_t{4} << 20;  // bounds the working memory, however large a row is

  // Acceleration of LZ4: 1 compresses best, higher is faster.
  explicit BlockCodec(int acceleration = 1);

  // Max packed size of `bytes` raw bytes.
  static size_t max_packed(size_t bytes) noexcept;

  // Returns the packed size; `out` has room for max_packed(). `word` is the size of the numbers in `raw`, a divisor of
  // its size: 1, 2, 4 or 8. Lossless for any bytes.
  size_t pack(std::span<const std::byte> raw, size_t word, std::byte* out);

  // Unpacks raw.size() bytes from the front of `packed` into `raw` and advances `packed`. False if the data is damaged;
  // the contents of `raw` are then undefined. Safe for any bytes.
  bool unpack(std::span<const std::byte>& packed, size_t word, std::span<std::byte> raw);

  // Advances `packed` like unpack(), without unpacking.
  static bool skip(std::span<const std::byte>& packed, size_t bytes) noexcept;

  // For callers that store packed bytes elsewhere: size of a piece's header, number of pieces for `bytes` raw bytes,
  // and size of a piece including its header, which is any number up to 2^32 + 31 if the header is damaged.
  static constexpr size_t kPieceHeader = 32;
  static constexpr size_t pieces(size_t bytes) noexcept { return (bytes + kPiece - 1) / kPiece; }
  static size_t piece_bytes(std::span<const std::byte, kPieceHeader> header) noexcept;

  // Memory for this many packed bytes, valid until the next call.
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
