#include "chat/jinja_text.h"

#include <algorithm>

#include "data/unicode_classes.h"

namespace quern::chat {
namespace {

using data::decode_valid;
using data::DecodedCharacter;

size_t last_character(std::string_view text) noexcept {
  size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

// For each prefix of `needle`, the length of its longest proper suffix that is also a prefix (Knuth, Morris, Pratt).
std::vector<size_t> borders(std::string_view needle) {
  std::vector<size_t> lengths(needle.size(), 0);
  for (size_t i = 1, length = 0; i < needle.size(); ++i) {
    while (length > 0 && needle[i] != needle[length]) length = lengths[length - 1];
    if (needle[i] == needle[length]) ++length;
    lengths[i] = length;
  }
  return lengths;
}

// Calls found(position) for each occurrence, without overlaps, until it returns false. Linear in the text for any
// needle that is not empty.
template <typename Found>
void for_each_match(std::string_view text, std::string_view needle, Found found) {
  const std::vector<size_t> lengths = borders(needle);
  for (size_t i = 0, matched = 0; i < text.size(); ++i) {
    while (matched > 0 && text[i] != needle[matched]) matched = lengths[matched - 1];
    if (text[i] == needle[matched]) ++matched;
    if (matched < needle.size()) continue;
    if (!found(i + 1 - matched)) return;
    matched = 0;
  }
}

size_t find_long(std::string_view text, std::string_view needle) {
  size_t position = std::string_view::npos;
  for_each_match(text, needle, [&](size_t at) { return position = at, false; });
  return position;
}

bool is_line_end(uint32_t c) noexcept {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// The number of bytes of the line end at `at`, or 0. CR LF is one.
size_t line_end_at(std::string_view text, size_t at) noexcept {
  if (text.substr(at, 2) == "\r\n") return 2;
  const DecodedCharacter next = decode_valid(text.data() + at);
  return is_line_end(next.value) ? next.length : 0;
}

}  // namespace

bool is_space(uint32_t c) noexcept {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t leading_space(std::string_view text) noexcept {
  size_t at = 0;
  while (at < text.size()) {
    const DecodedCharacter next = decode_valid(text.data() + at);
    if (!is_space(next.value)) break;
    at += next.length;
  }
  return at;
}

std::string_view strip(std::string_view text, Side side, const std::optional<std::string_view>& characters) {
  std::vector<uint32_t> set;
  for (size_t at = 0; characters && at < characters->size();) {
    const DecodedCharacter next = decode_valid(characters->data() + at);
    set.push_back(next.value);
    at += next.length;
  }
  std::sort(set.begin(), set.end());
  const auto goes = [&](uint32_t c) {
    return characters ? std::binary_search(set.begin(), set.end(), c) : is_space(c);
  };
  while (side != Side::kRight && !text.empty()) {
    const DecodedCharacter next = decode_valid(text.data());
    if (!goes(next.value)) break;
    text.remove_prefix(next.length);
  }
  while (side != Side::kLeft && !text.empty()) {
    const size_t at = last_character(text);
    if (!goes(decode_valid(text.data() + at).value)) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

size_t offset_of(std::string_view text, size_t character) noexcept {
  size_t at = 0;
  for (; character > 0 && at < text.size(); --character) at += decode_valid(text.data() + at).length;
  return at;
}

size_t characters_in(std::string_view text) noexcept {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

size_t find_text(std::string_view text, std::string_view needle) {
  constexpr size_t kShort = 16;  // std::string_view is faster, and its worst case is 16 comparisons per byte
  return needle.size() <= kShort ? text.find(needle) : find_long(text, needle);
}

size_t find_last_text(std::string_view text, std::string_view needle) {
  const std::string reversed(text.rbegin(), text.rend());
  const size_t found = find_text(reversed, std::string(needle.rbegin(), needle.rend()));
  return found == std::string::npos ? found : text.size() - found - needle.size();
}

size_t count_text(std::string_view text, std::string_view needle) {
  size_t count = 0;
  for_each_match(text, needle, [&](size_t) { return ++count, true; });
  return count;
}

std::vector<std::string_view> split_spaces(std::string_view text, size_t limit) {
  std::vector<std::string_view> parts;
  for (text.remove_prefix(leading_space(text)); !text.empty(); text.remove_prefix(leading_space(text))) {
    size_t end = 0;
    for (DecodedCharacter next{}; end < text.size(); end += next.length) {
      next = decode_valid(text.data() + end);
      if (is_space(next.value)) break;
    }
    if (parts.size() == limit) end = text.size();
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, size_t limit) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for_each_match(text, separator, [&](size_t at) {
    if (parts.size() == limit) return false;
    parts.push_back(text.substr(start, at - start));
    start = at + separator.size();
    return true;
  });
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<std::string_view> split_right(std::string_view text, std::string_view separator, size_t limit) {
  const std::string reversed(text.rbegin(), text.rend());
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(reversed, std::string(separator.rbegin(), separator.rend()), limit)) {
    const auto start = static_cast<size_t>(part.data() - reversed.data());
    parts.push_back(text.substr(text.size() - start - part.size(), part.size()));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string escape_html(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  std::string result;
  for (const char c : text) {
    const auto* found =
        std::find_if(std::begin(kEscapes), std::end(kEscapes), [c](const auto& e) { return e.first == c; });
    if (found == std::end(kEscapes)) result += c;
    if (found != std::end(kEscapes)) result += found->second;
  }
  return result;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = line_end_at(text, at);
    if (end > 0) lines.push_back(text.substr(start, at - start));
    at += end > 0 ? end : decode_valid(text.data() + at).length;
    if (end > 0) start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

}  // namespace quern::chat
