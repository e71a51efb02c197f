// Python's operations on text, on valid UTF-8. Positions are in bytes unless they are called characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::chat {

inline constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// What str.isspace() accepts, which also is \s in a regular expression of Python.
bool is_space(uint32_t character) noexcept;

// The number of bytes of white space at the start of `text`.
size_t leading_space(std::string_view text) noexcept;

enum class Side : uint8_t { kLeft, kRight, kBoth };
// Without white space, or without the characters of `characters`, at one or both ends.
std::string_view strip(std::string_view text, Side side, const std::optional<std::string_view>& characters = {});

// The position of the character with this number, or the size if there are fewer. O(size).
size_t offset_of(std::string_view text, size_t character) noexcept;
size_t characters_in(std::string_view text) noexcept;

// As text.find(), but in linear time for every pattern: std::string::find() compares a needle of 16 MB that almost
// matches everywhere for days.
size_t find_text(std::string_view text, std::string_view needle);
size_t find_last_text(std::string_view text, std::string_view needle);
size_t count_text(std::string_view text, std::string_view needle);  // without overlaps; not of an empty needle

// str.split(): by runs of white space, or by a separator that is not empty, at most `limit` times.
std::vector<std::string_view> split_spaces(std::string_view text, size_t limit = kNoLimit);
std::vector<std::string_view> split(std::string_view text, std::string_view separator, size_t limit = kNoLimit);
std::vector<std::string_view> split_right(std::string_view text, std::string_view separator, size_t limit);
std::vector<std::string_view> split_lines(std::string_view text);

// Case mappings of single characters, and the special case of the sharp s, whose upper case is SS. Python also knows
// about 100 ligatures and similar characters whose mapping is longer than one character.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // every run of letters

// Whether there is a letter with case and all of them have this one.
bool is_upper(std::string_view text) noexcept;
bool is_lower(std::string_view text) noexcept;
// Whether all characters are letters, or decimal digits, and there is one.
bool is_alphabetic(std::string_view text) noexcept;
bool is_decimal(std::string_view text) noexcept;

// With & < > ' " as character references.
std::string escape_html(std::string_view text);

// As Python's repr(): in quotes, with escapes.
std::string repr_text(std::string_view text);

}  // namespace quern::chat
