// JSON to and from text, with limited nesting depth. Wraps the library's parse() and dump(), which take the compiler 2
// to 5 s in each file that calls them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quern {

// Maximum nesting that is accepted: none of Quern's files, nor any tokenizer.json, nests deeper than 8. The library
// parses and destroys iteratively, but prints, copies and compares recursively: a million brackets in a damaged or
// hostile file would overflow the stack in the middle of an error message.
inline constexpr size_t kMaxJsonDepth = 64;

// Whether more than kMaxJsonDepth arrays and objects are open at once anywhere in `text`. Exact for JSON; for text that
// is not JSON the result is unspecified. Reads every byte once.
bool nested_too_deep(std::string_view text) noexcept;

// Parses `text`. The result is_discarded() if the text is not JSON or is nested too deeply. All JSON from files is
// parsed here, except by code that builds no tree.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);  // preserves the order of keys

// Where `text` stops being JSON, for messages: the number of bytes up to and including the first that does not fit; 0
// if the text is JSON. Slower than parsing.
size_t json_error_byte(std::string_view text);

// Serializes to one line, or with `indent` spaces per level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace quern
