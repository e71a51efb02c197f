// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quern::data {

inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

struct CodePoint {
  uint32_t value = 0;
  uint32_t length = 0;  // in bytes, 1 to 4; 0 if the character is not valid
};

// The character that starts at text[at]; at < text.size().
CodePoint read_code_point(std::string_view text, size_t at) noexcept;

// The length in bytes of the longest prefix of `text` that consists of complete, valid characters.
size_t valid_utf8_length(std::string_view text) noexcept;

// `value` must be a code point that is not a surrogate.
void append_utf8(uint32_t value, std::string& text);

// For messages: in quotes, on one line, with control characters and invalid bytes as \xNN, truncated after 40 bytes.
std::string in_quotes(std::string_view text);

}  // namespace quern::data
