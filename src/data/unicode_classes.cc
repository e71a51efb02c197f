#include "data/unicode_classes.h"

#include <memory>
#include <span>

#include "data/unicode_ranges.h"

namespace quern::data {
namespace {

// The property White_Space. PCRE2's \s also has U+180E, which lost the property in Unicode 6.3.
constexpr unicode::Range kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                      {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                      {0x205F, 0x205F}, {0x3000, 0x3000}};

}  // namespace

UnicodeClasses::UnicodeClasses() {
  const auto mark = [this](std::span<const unicode::Range> ranges, uint8_t flags) {
    for (const unicode::Range& range : ranges) {
      for (uint32_t point = range.first; point <= range.last; ++point) flags_[point] |= flags;
    }
  };
  mark(unicode::kLetters, static_cast<uint8_t>(CharacterClass::kLetter));
  mark(unicode::kNumbers, static_cast<uint8_t>(CharacterClass::kNumber));
  mark(kSpaces, static_cast<uint8_t>(CharacterClass::kSpace));
  mark(unicode::kUnstable, kUnstableBit);
}

const UnicodeClasses& UnicodeClasses::get() {
  static const std::unique_ptr<const UnicodeClasses> classes(new UnicodeClasses());
  return *classes;
}

}  // namespace quern::data
