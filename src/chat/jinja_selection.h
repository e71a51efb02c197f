// Attributes of items by their name, as filters take them.
#pragma once

#include "chat/jinja_value.h"

namespace quern::chat {

// `attribute` is an integer, or a text such as "function.name" or "0.text", whose parts are looked up one in the other.
Value select_attribute(Rendering& rendering, const Value& item, const Value& attribute);

}  // namespace quern::chat
