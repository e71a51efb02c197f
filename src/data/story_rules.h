// The grammar from which stories are generated, as text; story_grammar.h describes the syntax.
#pragma once

#include <string_view>

namespace quern::data {

extern const std::string_view kStoryRules;

}  // namespace quern::data
