// Prints warnings of the library on standard error.
#pragma once

#include <cstdio>
#include <string>

#include "core/text.h"
#include "report/output.h"

namespace quern::cli {

inline void warn(const std::string& text) { report::Output(stderr).print("quern: warning: {}\n", printable(text)); }

}  // namespace quern::cli
