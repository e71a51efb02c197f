// Generated text on standard output.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/text.h"

namespace quern::cli {

// Files and pipes get the raw text; a terminal would interpret escape codes in it.
inline void show_text(const std::string& characters) {
  static const bool terminal = isatty(STDOUT_FILENO) != 0;
  fmt::print("{}", terminal ? printable(characters, Lines::kStay) : characters);
  std::fflush(stdout);
}

}  // namespace quern::cli
