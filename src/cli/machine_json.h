// The "machine" object that every --json output carries.
#pragma once

#include <nlohmann/json.hpp>

#include "report/machine.h"

namespace quern::cli {

// Keeps the order in which keys were added, so that the output reads from the important to the rest.
using Json = nlohmann::ordered_json;

// Adds version and commit to the measured limits, so that a published number names both.
Json to_json(const report::Machine& machine);

}  // namespace quern::cli
