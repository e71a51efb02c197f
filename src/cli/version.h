// The version of this build.
#pragma once

#include <string>

namespace quern::cli {

std::string version();       // "0.1.0"
std::string commit();        // "0c89bf7a1b2c", with "-dirty" if files differ; "unknown" outside a checkout
std::string version_line();  // "quern 0.1.0 (0c89bf7a1b2c)"

}  // namespace quern::cli
