// The "machine" object in every --json output.
#pragma once

#include <nlohmann/json.hpp>

#include "report/machine.h"

namespace quern::cli {

// Preserves insertion order, so that the most important keys come first in the output.
using Json = nlohmann::ordered_json;

// Adds version and commit to the measured limits, so that published numbers can be traced to a build.
Json to_json(const report::Machine& machine);

}  // namespace quern::cli
