#include "core/json.h"

namespace quern {

bool nested_too_deep(std::string_view text) noexcept {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

namespace {

template <typename Json>
Json parse(std::string_view text) {
  if (nested_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <typename Json>
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse<nlohmann::json>(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) { return parse<nlohmann::ordered_json>(text); }

std::string json_text(const nlohmann::json& json, int indent) { return dump(json, indent); }
std::string json_text(const nlohmann::ordered_json& json, int indent) { return dump(json, indent); }

}  // namespace quern
