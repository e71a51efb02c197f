// The name of this machine.
#pragma once

#include <string>

namespace quern {

std::string host_name();  // "localhost" if it has none

}  // namespace quern
