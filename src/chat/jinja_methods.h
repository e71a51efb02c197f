// Methods of texts, lists and dicts.
#pragma once

#include <string_view>

#include "chat/jinja_value.h"

namespace quern::chat {

using Method = Value (*)(Rendering& rendering, const Value& self, const Arguments& arguments);

// nullptr if `self` has no such method. Fails for a method that it has in Python but not here.
Method find_method(const Budget& budget, const Value& self, std::string_view name);

// The methods of texts among them.
Method find_text_method(std::string_view name);

// The entries of a dict as tuples.
Values entries_of(Budget& budget, const Dict& dict);

// text.replace(old, new, limit), which the filter also uses. The result is counted before it exists.
Value replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view replacement,
                   size_t limit);

}  // namespace quern::chat
