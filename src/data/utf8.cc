#include "data/utf8.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cstring>

namespace quern::data {
namespace {

constexpr bool is_surrogate(uint32_t value) { return value >= 0xD800 && value <= 0xDFFF; }

}  // namespace

CodePoint read_code_point(std::string_view text, size_t at) noexcept {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const uint32_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < length) return {};
  uint32_t value = first & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<uint32_t, 5> kMin = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kMin[length] || value > kMaxCodePoint || is_surrogate(value)) return {};
  return {value, length};
}

size_t valid_utf8_length(std::string_view text) noexcept {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    while (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) != 0) break;
      at += sizeof eight;
    }
    if (at == text.size()) break;
    const CodePoint next = read_code_point(text, at);
    if (next.length == 0) break;
    at += next.length;
  }
  return at;
}

void append_utf8(uint32_t value, std::string& text) {
  assert(value <= kMaxCodePoint && !is_surrogate(value));
  const auto put = [&](uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  const auto put_rest = [&](int shift) {
    for (; shift >= 0; shift -= 6) put(0x80 | (value >> shift & 0x3F));
  };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6), put_rest(0);
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12), put_rest(6);
  } else {
    put(0xF0 | value >> 18), put_rest(12);
  }
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMaxLength = 40;
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    if (at >= kMaxLength) return out + "\"...";
    const CodePoint next = read_code_point(text, at);
    const bool printable = next.length > 0 && next.value >= 0x20 && (next.value < 0x7F || next.value >= 0xA0);
    if (printable) {
      out += text.substr(at, next.length);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    }
    at += printable ? next.length : 1;
  }
  return out + "\"";
}

}  // namespace quern::data
