#include "cli/version.h"

#include "commit.h"  // written by cmake/commit.cmake at every build

namespace quern::cli {

std::string version() { return QUERN_VERSION; }
std::string commit() { return QUERN_COMMIT; }
std::string version_line() { return "quern " + version() + " (" + commit() + ")"; }

}  // namespace quern::cli
