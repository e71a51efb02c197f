// The text of the grammar that the stories are drawn from; story_grammar.h says how it is read.
#pragma once

#include <string_view>

namespace quern::data {

extern const std::string_view kStoryRules;

}  // namespace quern::data
