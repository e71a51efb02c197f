// Classes of characters that pre-tokenizers and normalisation need.
#pragma once

#include <array>
#include <cstdint>

namespace quern::data {

enum class CharacterClass : uint8_t { kOther, kLetter, kNumber, kSpace };

// Unicode 16, as Hugging Face `tokenizers` 0.23. The version is that of a table in the source rather than of an
// installed library, so a text has the same ids everywhere. Immutable and thread-safe.
class UnicodeClasses {
 public:
  // Built at the first call, in about 0.2 ms.
  static const UnicodeClasses& get();

  // \p{L}, \p{N} or White_Space. `code_point` <= kMaxCodePoint.
  CharacterClass of(uint32_t code_point) const noexcept {
    return static_cast<CharacterClass>(flags_[code_point] & kClassBits);
  }

  // Whether the character may change, or combine with the one before it, under NFC (of Unicode 9, see nfc.h). Text
  // without such characters is in NFC, and normalising the text before and after any other character separately gives
  // the same as together.
  bool is_unstable(uint32_t code_point) const noexcept { return (flags_[code_point] & kUnstableBit) != 0; }

 private:
  static constexpr uint8_t kClassBits = 3;
  static constexpr uint8_t kUnstableBit = 4;

  UnicodeClasses();

  std::array<uint8_t, 0x110000> flags_{};  // 1.1 MB, of which ordinary text touches a few pages
};

// The character at `at` in valid UTF-8.
struct DecodedCharacter {
  uint32_t value;
  uint32_t length;  // in bytes
};
inline DecodedCharacter decode_valid(const char* at) noexcept {
  const auto byte = [at](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

}  // namespace quern::data
