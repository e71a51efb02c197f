// Tests: value is name(arguments).
#pragma once

#include <string_view>

#include "chat/jinja_value.h"

namespace quern::chat {

using Test = bool (*)(Rendering& rendering, const Value& subject, const Arguments& arguments);

// nullptr if there is none with this name.
Test find_test(std::string_view name);

}  // namespace quern::chat
