#include "data/token_buffer.h"

#include <algorithm>
#include <cassert>

#include "core/error.h"

namespace quern::data {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }  // of UTF-8

// Whether `text` ends in a character that is not white space in any version of Unicode. Beyond ASCII, white space is
// U+0085 U+00A0 (C2 85, C2 A0), U+1680 U+180E (E1 9A 80, E1 A0 8E), some of U+2000 to U+205F (E2 80, E2 81) and U+3000
// (E3 80 80). The test compares these bytes and also matches a few other characters, which only moves the cut.
bool ends_visibly(std::string_view text) {
  const auto last = static_cast<unsigned char>(text.back());
  if (last < 0x80) return last > ' ' && last <= '~';
  if (text.size() < 3) return false;
  const std::string_view two = text.substr(text.size() - 2, 1), three = text.substr(text.size() - 3, 2);
  return two != "\xC2" && three != "\xE1\x9A" && three != "\xE1\xA0" && three != "\xE2\x80" && three != "\xE2\x81" &&
         text.substr(text.size() - 3) != "\xE3\x80\x80";
}

bool is_cut(std::string_view text, size_t at, CutRule rule) {
  return (text[at] == ' ' || (text[at] == '\n' && rule == CutRule::kBeforeWhiteSpace)) &&
         ends_visibly(text.substr(0, at));
}

}  // namespace

size_t piece_length(std::string_view text, size_t wanted, CutRule rule) {
  assert(wanted > 0);
  if (text.size() <= wanted) return text.size();
  const size_t limit = std::min(text.size(), 2 * wanted);
  for (size_t at = wanted; at < limit; ++at) {
    if (is_cut(text, at, rule)) return at;
  }
  if (limit == text.size()) return limit;
  for (size_t at = wanted; at < limit; ++at) {
    if (text[at] == ' ' || text[at] == '\n') return at;
  }
  size_t at = wanted;
  while (at < limit && continues_character(text[at])) ++at;  // a run of invalid UTF-8 may have any length
  return at;
}

TokenBuffer::TokenBuffer(uint32_t vocabulary) : vocabulary_(vocabulary), width_(vocabulary <= 65536 ? 2 : 4) {
  if (vocabulary == 0 || vocabulary > uint32_t{1} << 31) {
    throw Error("[data] vocabulary: expected 1 to 2147483648 entries, found {}", vocabulary);
  }
}

template <typename Word>
void TokenBuffer::append_words(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<uint32_t>(token) >= vocabulary_) {
      throw Error("[data] token {}: expected an id from 0 to {}, found {}", size_, vocabulary_ - 1, token);
    }
    const size_t at = size_ % kChunkTokens;
    if (at == 0) chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkTokens * sizeof(Word)));
    reinterpret_cast<Word*>(chunks_.back().get())[at] = static_cast<Word>(token);
    ++size_;
  }
}

template <typename Word>
void TokenBuffer::copy_words(uint64_t position, size_t count, int32_t* out) const {
  while (count > 0) {
    const size_t at = position % kChunkTokens;
    const size_t here = std::min(count, kChunkTokens - at);
    widen(reinterpret_cast<const Word*>(chunks_[position / kChunkTokens].get()) + at, here, out);
    position += here;
    out += here;
    count -= here;
  }
}

void TokenBuffer::append(std::span<const int32_t> tokens) {
  width_ == 2 ? append_words<uint16_t>(tokens) : append_words<uint32_t>(tokens);
}

void TokenBuffer::copy(uint64_t position, size_t count, int32_t* out) const {
  assert(position <= size_ && count <= size_ - position);
  width_ == 2 ? copy_words<uint16_t>(position, count, out) : copy_words<uint32_t>(position, count, out);
}

void TokenBuffer::append_text(std::string_view text, const Encode& encode, CutRule rule) {
  while (!text.empty()) {
    const size_t length = piece_length(text, kPieceBytes, rule);
    piece_.clear();
    encode(text.substr(0, length), piece_);
    append(piece_);
    text.remove_prefix(length);
  }
}

}  // namespace quern::data
