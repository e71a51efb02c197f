#include "data/byte_alphabet.h"

#include <algorithm>

#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;
constexpr uint32_t kEnd = kFirstStandIn + 68;  // past the last character of the alphabet

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  std::array<uint32_t, 256> character{};  // by byte
  std::array<int, kEnd> byte{};           // by character, or -1
  std::array<uint8_t, 256> order{};

  constexpr Alphabet() {
    byte.fill(-1);
    uint32_t stand_in = kFirstStandIn;
    for (uint32_t b = 0; b < 256; ++b) {
      character[b] = stands_for_itself(b) ? b : stand_in++;
      byte[character[b]] = static_cast<int>(b);
    }
    size_t where = 0;
    for (const int b : byte) {
      if (b >= 0) order[where++] = static_cast<uint8_t>(b);
    }
  }
};

constexpr Alphabet kAlphabet;
static_assert(kAlphabet.character[' '] == 0x120 && kAlphabet.character[0xAD] == kEnd - 1);

}  // namespace

const std::array<uint8_t, 256>& bytes_in_alphabet_order() noexcept { return kAlphabet.order; }

std::string to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(kAlphabet.character[static_cast<unsigned char>(byte)], text);
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = read_code_point(text, at);
    if (next.length == 0 || next.value >= kEnd || kAlphabet.byte[next.value] < 0) return std::nullopt;
    bytes += static_cast<char>(static_cast<unsigned char>(kAlphabet.byte[next.value]));
    at += next.length;
  }
  return bytes;
}

}  // namespace quern::data
