// JSON to and from text, with the depth of its nesting limited. Here rather than by the library's own parse() and
// dump(), which take the compiler 2 to 5 s in each file that calls them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quern {

// Deepest nesting that is accepted: no file of ours, nor a tokenizer.json, has more than 8. The library parses and
// destroys in a loop, but prints, copies and compares by recursion: a million brackets in a damaged or hostile file
// would overflow the stack in the middle of an error message.
inline constexpr size_t kMaxJsonDepth = 64;

// Whether more arrays and objects than kMaxJsonDepth are open at once somewhere in `text`. Right for JSON; for text
// that is not JSON any answer may come. Reads every byte once.
bool nested_too_deep(std::string_view text) noexcept;

// Parses `text`. The result is_discarded() when that is not JSON or is nested too deep. All JSON from files is parsed
// here, except by those who build no tree.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);  // keys stay in the order of the text

// As text: in one line, or with `indent` spaces for each level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace quern
