// JSON from a file, with the depth of its nesting limited.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
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
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (nested_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace quern
