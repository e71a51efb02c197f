// Whole numbers on the command line.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>

#include "core/text.h"

namespace quern::cli {

// For option->transform(): decimal digits from `least` to `most`, or an error that says so. CLI11 alone reads them with
// strtoull(), which takes -1 for 2^64 - 1, a number beyond 64 bits for the largest one, and 010 for 8.
template <typename Whole>
CLI::Validator whole_number(Whole least = 0, Whole most = std::numeric_limits<Whole>::max()) {
  const auto check = [least, most](std::string& text) {
    Whole value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = code == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
    if (!good) return fmt::format("expected a whole number from {} to {}, found {}", least, most, in_quotes(text, 40));
    text = std::to_string(value);  // without zeros in front
    return std::string();
  };
  return {check, ""};
}

}  // namespace quern::cli
