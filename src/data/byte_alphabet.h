// GPT-2's alphabet: a printable character for each of the 256 bytes, so that tokens of any bytes are JSON strings
// without spaces or escapes. Bytes that are printable in Latin-1 stand for themselves (! to ~, U+00A1 to U+00FF except
// the soft hyphen U+00AD); the other 68, in order, are U+0100, U+0101, ...: a space is U+0120.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::data {

// The 256 bytes in the order of their characters. GPT-2 and Hugging Face's trainer assign the ids 0 ... 255 in this
// order.
const std::array<uint8_t, 256>& bytes_in_alphabet_order() noexcept;

// Any bytes as characters of the alphabet, in UTF-8.
std::string to_alphabet(std::string_view bytes);

// The inverse; nullopt if `text` contains characters outside the alphabet.
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace quern::data
