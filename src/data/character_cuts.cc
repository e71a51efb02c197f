#include "data/character_cuts.h"

#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr uint32_t kSpaceSymbolCode = 0x2581;
constexpr uint32_t kInvalid = UINT32_MAX;  // a byte that is not UTF-8: no token contains it

// Both spellings of a space are one character, and ASCII, because it is the most frequent one.
uint32_t unified(const CodePoint& next) noexcept {
  if (next.length == 0) return kInvalid;
  return next.value == kSpaceSymbolCode ? uint32_t{' '} : next.value;
}

uint64_t pair_of(uint32_t left, uint32_t right) noexcept { return uint64_t{left} << 32 | right; }

}  // namespace

CharacterCuts::CharacterCuts(const BpeModel& model) : whole_(!model.rules.byte_fallback) {
  for (const Merge& merge : model.merges) {
    const std::string_view token = model.tokens[static_cast<size_t>(merge.result)];
    uint32_t previous = kInvalid;
    for (size_t at = 0; at < token.size();) {
      const CodePoint next = read_code_point(token, at);
      const uint32_t character = unified(next);
      if (previous < 128 && character < 128) {
        ascii_[previous].set(character);
      } else if (previous != kInvalid) {
        others_.insert(pair_of(previous, character));
      }
      previous = character;
      at += next.length == 0 ? 1 : next.length;
    }
  }
}

bool CharacterCuts::are_neighbours(uint32_t left, uint32_t right) const noexcept {
  if (left < 128 && right < 128) return ascii_[left][right];
  return others_.contains(pair_of(left, right));
}

size_t CharacterCuts::piece_length(std::string_view text) const noexcept {
  if (whole_) return text.size();
  const CodePoint first = read_code_point(text, 0);
  uint32_t previous = unified(first);
  size_t at = first.length == 0 ? 1 : first.length;
  while (at < text.size()) {
    const CodePoint next = read_code_point(text, at);
    const uint32_t character = unified(next);
    if (!are_neighbours(previous, character)) break;
    previous = character;
    at += next.length == 0 ? 1 : next.length;
  }
  return at;
}

}  // namespace quern::data
