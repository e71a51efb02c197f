// Values as text: as Python prints them, and as JSON.
#pragma once

#include <string>

#include "chat/jinja_value.h"

namespace quern::chat {

// str(): a text is itself, undefined is empty, and other values are as repr() shows them. Fails for functions.
std::string to_text(Budget& budget, const Value& value);

struct JsonStyle {
  bool ascii_only = false;
  bool sort_keys = false;
  std::string indent;  // of one level
  bool is_indented = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// json.dumps(). Fails for values that JSON does not have.
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace quern::chat
