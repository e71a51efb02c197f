// Other names of flags, which people type by reflex. They work; the help mentions them next to the flag's own name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::cli {

// The other names of a flag: --lr and --learning-rate for --rate. Usually none.
std::vector<std::string> aliases_of(std::string_view flag);

// All names of a flag, its own first: aliases, and each name with underscores for inner dashes (--top_k).
std::vector<std::string> names_of(std::string_view flag);

}  // namespace quern::cli
