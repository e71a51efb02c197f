#include "generate/utf8_stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace quern {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What may follow a first byte (the Unicode standard, table 3-7). The second byte's range excludes overlong forms,
// surrogates, and values above U+10FFFF.
struct Form {
  size_t length;  // 0 for a byte that cannot start a character
  uint8_t low, high;
};

Form form_of(uint8_t first) {
  if (first < 0x80) return {1, 0, 0};
  if (first < 0xC2) return {0, 0, 0};
  if (first < 0xE0) return {2, 0x80, 0xBF};
  if (first < 0xF0)
    return {3, static_cast<uint8_t>(first == 0xE0 ? 0xA0 : 0x80), static_cast<uint8_t>(first == 0xED ? 0x9F : 0xBF)};
  if (first < 0xF5)
    return {4, static_cast<uint8_t>(first == 0xF0 ? 0x90 : 0x80), static_cast<uint8_t>(first == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

// How many bytes at the front of `bytes`, which is not empty, match the form; at least 1.
size_t fitting(std::string_view bytes, const Form& form) {
  size_t n = 1;
  for (; n < std::min(form.length, bytes.size()); ++n) {
    const auto byte = static_cast<uint8_t>(bytes[n]);
    const uint8_t low = n == 1 ? form.low : 0x80, high = n == 1 ? form.high : 0xBF;
    if (byte < low || byte > high) break;
  }
  return n;
}

}  // namespace

std::string Utf8Stream::feed(std::string_view bytes) {
  const std::string all = saved_ + std::string(bytes);
  std::string text;
  std::string_view rest = all;
  while (!rest.empty()) {
    const Form form = form_of(static_cast<uint8_t>(rest.front()));
    const size_t n = fitting(rest, form);
    if (n == rest.size() && n < form.length) break;  // the next bytes decide
    text += n == form.length ? rest.substr(0, n) : kReplacement;
    rest.remove_prefix(n);
  }
  saved_ = rest;
  return text;
}

std::string Utf8Stream::finish() {
  const bool open = !saved_.empty();
  saved_.clear();
  return std::string(open ? kReplacement : std::string_view{});
}

}  // namespace quern
