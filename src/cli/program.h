// Shared by the programs `quern` and `quern-bench`: standard streams, the vector target, and failures reported as one
// line.
#pragma once

#include <functional>

namespace quern::cli {

// Calls `run` and returns its exit code. If it throws or standard output cannot be written, prints "quern: REASON" and
// returns 2. Only for main(): it also sets up the standard streams and signals of the process.
int run_program(const std::function<int()>& run);

// Selects the vector target named by QUERN_TARGET; Error if it is unknown. Call before running a command.
void use_requested_target();

}  // namespace quern::cli
