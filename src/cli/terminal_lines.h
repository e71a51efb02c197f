// Lines that a person types.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quern::cli {

// A line of standard input without its line break; nullopt at the end of the input.
std::optional<std::string> read_line();

// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace quern::cli
