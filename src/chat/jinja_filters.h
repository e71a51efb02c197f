// Filters: value | name(arguments).
#pragma once

#include <string_view>

#include "chat/jinja_value.h"

namespace quern::chat {

using Filter = Value (*)(Rendering& rendering, const Value& input, const Arguments& arguments);

// nullptr if there is none with this name.
Filter find_filter(std::string_view name);

// The tables that find_filter() searches, by subject.
Filter find_text_filter(std::string_view name);
Filter find_number_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_selection_filter(std::string_view name);

}  // namespace quern::chat
