#include "data/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace quern::data {
namespace {

constexpr uint64_t kPiece = 1024;
constexpr uint64_t kPieces = 4096;
constexpr uint64_t kPieceBytes = kPiece * sizeof(int32_t);
constexpr uint64_t kWholeBytes = kFingerprintWhole * sizeof(int32_t);
constexpr uint64_t kReadBytes = 256 * kPieceBytes;

// FNV-1a over words in eight lanes, because a single lane would wait for its multiplication at every token.
class Hash {
 public:
  // Pieces start at lane 0, so the length of all but the last must be a multiple of eight tokens.
  void add(const int32_t* tokens, size_t count) {
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) mix(lane, tokens[i + lane]);
    }
    for (size_t lane = 0; i + lane < count; ++lane) mix(lane, tokens[i + lane]);
  }

  // Pads the end to a full token with zeros.
  void add(std::string_view bytes) {
    tokens_.assign((bytes.size() + sizeof(int32_t) - 1) / sizeof(int32_t), 0);
    std::memcpy(tokens_.data(), bytes.data(), bytes.size());
    add(tokens_.data(), tokens_.size());
  }
  void add(uint64_t number) { add(std::string_view(reinterpret_cast<const char*>(&number), sizeof(number))); }

  uint64_t finish() const {
    uint64_t hash = 0;
    for (const uint64_t lane : lanes_) hash = scramble(hash ^ lane);
    return hash;
  }

 private:
  static constexpr size_t kLanes = 8;

  void mix(size_t lane, int32_t token) {
    lanes_[lane] = (lanes_[lane] ^ static_cast<uint32_t>(token)) * 0x00000100000001B3;  // the FNV prime
  }

  // Multiplication propagates changes to higher bits only; this (the finalizer of MurmurHash3) also mixes them down.
  static uint64_t scramble(uint64_t h) {
    h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCD;
    h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53;
    return h ^ (h >> 33);
  }

  std::vector<int32_t> tokens_;
  std::array<uint64_t, kLanes> lanes_ = {1, 2, 3, 4, 5, 6, 7, 8};
};

}  // namespace

Fingerprint fingerprint(const TokenStream& stream) {
  const uint64_t size = stream.size();
  std::vector<int32_t> piece(kPiece);
  Hash hash;
  const auto add = [&](uint64_t position, uint64_t count) {
    stream.copy(position, count, piece.data());
    hash.add(piece.data(), count);
  };
  if (size <= kFingerprintWhole) {
    for (uint64_t at = 0; at < size; at += kPiece) add(at, std::min(kPiece, size - at));
  } else {
    const uint64_t last = size - kPiece;
    for (uint64_t i = 0; i <= kPieces; ++i) add(last / kPieces * i + last % kPieces * i / kPieces, kPiece);
  }
  return {size, hash.finish()};
}

Fingerprint fingerprint(const TextSources& sources, std::string_view tokenizer) {
  uint64_t size = 0;
  Hash hash;
  hash.add(tokenizer);
  for (const std::shared_ptr<const TextSource>& source : sources) {
    hash.add(source->size());
    if (!source->conversions().empty()) hash.add(source->conversions());
    size += source->size();
  }
  // Reads blocks at this distance, evenly spaced over all sources.
  const uint64_t step = size <= kWholeBytes ? kReadBytes : size / kPieces;
  const uint64_t at_once = size <= kWholeBytes ? kReadBytes : kPieceBytes;
  std::string bytes;
  uint64_t at = 0;  // in the current source
  for (const std::shared_ptr<const TextSource>& source : sources) {
    for (; at < source->size(); at += step) {
      source->read(at, std::min(source->size(), at + at_once), bytes);
      hash.add(bytes);
    }
    at = size <= kWholeBytes ? 0 : at - source->size();
  }
  return {size, hash.finish()};
}

Fingerprint with_sizes(const Fingerprint& whole, std::span<const uint64_t> sizes) {
  if (sizes.size() < 2) return whole;
  Hash hash;
  hash.add(whole.hash);
  for (const uint64_t size : sizes) hash.add(size);
  return {whole.tokens, hash.finish()};
}

}  // namespace quern::data
