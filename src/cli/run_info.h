// Describes the run in a directory.
#pragma once

#include <string>

namespace quern::cli {

// Prints the run in `folder`, which may also be one of its checkpoints: its step, model, losses and weights hash, as
// text or as one JSON object. Error if there is no run or no complete checkpoint.
void print_run_info(const std::string& folder, bool json);

}  // namespace quern::cli
