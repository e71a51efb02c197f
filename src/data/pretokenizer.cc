#include "data/pretokenizer.h"

#include <array>

#include "data/unicode_classes.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

using enum CharacterClass;

constexpr std::array<CharacterClass, 128> kAscii = [] {
  std::array<CharacterClass, 128> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<size_t>(c)] = classes[static_cast<size_t>(c - 32)] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<size_t>(c)] = kNumber;
  for (int c = 9; c <= 13; ++c) classes[static_cast<size_t>(c)] = kSpace;
  classes[' '] = kSpace;
  return classes;
}();

struct Character {
  CharacterClass kind;
  uint32_t length;  // in bytes
};

inline Character character(const char* at) noexcept {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) [[likely]]
    return {kAscii[byte], 1};
  const DecodedCharacter decoded = decode_valid(at);
  return {UnicodeClasses::get().of(decoded.value), decoded.length};
}

// The end of the characters of this class that start at `at`.
inline const char* run(CharacterClass kind, const char* at, const char* end) noexcept {
  while (at < end) {
    const Character next = character(at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

inline bool is_newline(char c) noexcept { return c == '\r' || c == '\n'; }

// After an apostrophe, the end of s, t, m, d, re, ve or ll; null if there is none of them.
const char* contraction(const char* at, const char* end) noexcept {
  if (at == end) return nullptr;
  switch (*at) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 1;
    case 'r':
    case 'v':
      return at + 1 < end && at[1] == 'e' ? at + 2 : nullptr;
    case 'l':
      return at + 1 < end && at[1] == 'l' ? at + 2 : nullptr;
    default:
      return nullptr;
  }
}

// The same without regard to case. The long s, U+017F, is an s then.
const char* contraction_of_any_case(const char* at, const char* end) noexcept {
  std::array<char, 2> lower{};
  size_t count = 0;
  for (const char* c = at; c < end && count < lower.size(); ++c) {
    lower[count++] = *c >= 'A' && *c <= 'Z' ? static_cast<char>(*c + 32) : *c;
  }
  if (count == 2 && lower[0] == '\xC5' && lower[1] == '\xBF') return at + 2;
  const char* const found = contraction(lower.data(), lower.data() + count);
  return found == nullptr ? nullptr : at + (found - lower.data());
}

// \s+(?!\S)|\s+ : all of the white space at the end of a text, otherwise all but its last character, if it has several.
inline const char* white_space(const char* at, const char* stop, const char* end) noexcept {
  if (stop == end) return stop;
  const char* last = stop - 1;
  while ((static_cast<unsigned char>(*last) & 0xC0) == 0x80) --last;
  return last == at ? stop : last;
}

// `kDigits`: numbers are pieces of one character, and the text around them is split as if they were not there.
template <bool kDigits>
const char* scan_gpt2(const char* at, const char* end) noexcept {
  if (*at == '\'') {
    if (const char* const found = contraction(at + 1, end)) return found;
  }
  const Character first = character(at);
  if (kDigits && first.kind == kNumber) return at + first.length;
  if (*at == ' ' && at + 1 < end) {
    const Character second = character(at + 1);
    if (second.kind != kSpace && !(kDigits && second.kind == kNumber)) return run(second.kind, at + 1, end);
  }
  const char* const stop = run(first.kind, at + first.length, end);
  if (first.kind != kSpace) return stop;
  if (kDigits && stop < end && character(stop).kind == kNumber) return stop;
  return white_space(at, stop, end);
}

template <int kMaxDigits>
const char* scan_llama3(const char* at, const char* end) noexcept {
  if (*at == '\'') {
    if (const char* const found = contraction_of_any_case(at + 1, end)) return found;
  }
  const Character first = character(at);
  const char* const second = at + first.length;
  if (first.kind == kLetter) return run(kLetter, second, end);
  if (first.kind == kNumber) {
    const char* stop = second;
    for (int digits = 1; digits < kMaxDigits && stop < end; ++digits) {
      const Character next = character(stop);
      if (next.kind != kNumber) break;
      stop += next.length;
    }
    return stop;
  }
  if (second < end && !is_newline(*at)) {
    const Character next = character(second);
    if (next.kind == kLetter) return run(kLetter, second + next.length, end);
    if (*at == ' ' && next.kind == kOther) {
      const char* stop = run(kOther, second + next.length, end);
      while (stop < end && is_newline(*stop)) ++stop;
      return stop;
    }
  }
  if (first.kind == kOther) {
    const char* stop = run(kOther, second, end);
    while (stop < end && is_newline(*stop)) ++stop;
    return stop;
  }
  const char* const stop = run(kSpace, second, end);
  for (const char* last = stop; last > at; --last) {
    if (is_newline(last[-1])) return last;
  }
  return white_space(at, stop, end);
}

const char* scan_nothing(const char*, const char* end) noexcept { return end; }

const char* end_of_invalid(const char* at, const char* end) noexcept {
  const std::string_view rest(at, static_cast<size_t>(end - at));
  size_t length = 0;
  while (length < rest.size() && read_code_point(rest, length).length == 0) ++length;
  return at + length;
}

}  // namespace

Pretokenizer::Pretokenizer(PretokenizerKind kind) {
  switch (kind) {
    case PretokenizerKind::kNone:
      scan_ = scan_nothing;
      break;
    case PretokenizerKind::kGpt2:
      scan_ = scan_gpt2<false>;
      break;
    case PretokenizerKind::kDigitsGpt2:
      scan_ = scan_gpt2<true>;
      break;
    case PretokenizerKind::kLlama3:
      scan_ = scan_llama3<3>;
      break;
    case PretokenizerKind::kQwen2:
      scan_ = scan_llama3<1>;
      break;
  }
}

void Pretokenizer::start(std::string_view text) noexcept {
  at_ = valid_ = text.data();
  end_ = text.data() + text.size();
}

bool Pretokenizer::next(std::string_view& piece) noexcept {
  if (at_ == end_) return false;
  const char* const first = at_;
  if (at_ == valid_ && !start_region()) {
    at_ = valid_ = end_of_invalid(at_, end_);
  } else {
    at_ = scan_(at_, valid_);
  }
  piece = {first, static_cast<size_t>(at_ - first)};
  return true;
}

// Checks the text up to the next invalid byte. False if that is the first one.
bool Pretokenizer::start_region() noexcept {
  valid_ = at_ + valid_utf8_length({at_, static_cast<size_t>(end_ - at_)});
  return valid_ > at_;
}

}  // namespace quern::data
