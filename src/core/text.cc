#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace quern {
namespace {

// Levenshtein distance in which swapping two neighbours is one edit, by rows: row[j] is the distance between the first
// i letters of a and the first j of b; `above` is the row of i - 1, `above2` that of i - 2.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1), above(row.size()), above2(row.size());
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    above2.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), row[j - 1] + 1, above[j] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return row.back();
}

// Length of the UTF-8 sequence that starts at text[0], 0 if it is not valid. Overlong forms, surrogates and values
// above U+10FFFF are not UTF-8: the first two bytes reveal them.
size_t sequence_length(std::string_view text) noexcept {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

// Whether the character, a UTF-8 sequence, affects a terminal other than by being displayed: C0 and C1 controls, DEL,
// line and paragraph separators (U+2028, U+2029), and directional marks, embeddings, overrides and isolates (U+061C,
// U+200E, U+200F, U+202A ... U+202E, U+2066 ... U+2069), which can make a name look like another.
bool is_control(std::string_view character) noexcept {
  const auto byte = [character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < ' ' || byte(0) == 0x7F;
  if (character.size() == 2) return (byte(0) == 0xC2 && byte(1) < 0xA0) || character == "\u061C";
  if (character.size() != 3 || byte(0) != 0xE2) return false;
  const unsigned last = byte(2);
  if (byte(1) == 0x80) return last == 0x8E || last == 0x8F || (last >= 0xA8 && last <= 0xAE);
  return byte(1) == 0x81 && last >= 0xA6 && last <= 0xA9;
}

bool is_line_control(char c) noexcept { return c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(character.size());
    if (is_line_control(character[0])) {
      result += lines == Lines::kStay && character[0] != '\r' ? character[0] : ' ';
    } else if (length > 0 && !is_control(character)) {
      result += character;
    } else {
      for (const char c : character) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
  }
  return result;
}

std::string in_quotes(std::string_view text, size_t limit) {
  std::string result = "'";
  for (const char c : text.substr(0, limit)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return result + (text.size() > limit ? "...'" : "'");
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t min = word.size() / 2 + 1;
  if (word.size() > 100) return best;  // the cost is the product of the lengths, and no valid name is that long
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < min && 2 * distance < candidate.size()) {
      min = distance;
      best = candidate;
    }
  }
  return best;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace quern
