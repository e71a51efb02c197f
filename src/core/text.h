// Small helpers for text in messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace quern {

// `text` from an untrusted file, made safe for a one-line message: 'in quotes', bytes other than printable ASCII as
// \x1f, truncated after `limit` bytes.
std::string in_quotes(std::string_view text, size_t limit = 80);

// `text`, possibly from an untrusted file, made safe for a terminal, in UTF-8. Control characters (which start escape
// codes), characters that change the writing direction, and bytes that are not UTF-8 become \x1b. Tabs and line breaks
// become spaces unless `lines` is kStay. All errors, warnings and reports pass through here.
enum class Lines : bool { kJoined, kStay };
std::string printable(std::string_view text, Lines lines = Lines::kJoined);

// The candidate with the smallest edit distance to `word` (insertions, deletions, replacements, swaps of neighbours);
// empty if none needs fewer than half of its letters changed. For "did you mean".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

bool is_utf8(std::string_view text) noexcept;

}  // namespace quern
