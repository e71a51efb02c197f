// What a run's folder holds.
#pragma once

#include <string>

namespace quern::cli {

// Prints the run in `folder`: how far it came, its model, its losses and the hash of its weights; as one JSON object
// when asked. Error when there is no run or no checkpoint that is whole.
void print_run_info(const std::string& folder, bool json);

}  // namespace quern::cli
