// What the programs `quern` and `quern-bench` share: standard streams, the vector target, and every failure as one
// line.
#pragma once

#include <functional>

namespace quern::cli {

// Calls `run` and returns its exit code, or prints "quern: REASON" and returns 2 when it throws or when standard output
// could not be written. For main() alone: it also sets up the standard streams and signals of the process.
int run_program(const std::function<int()>& run);

// Uses the vector target that QUERN_TARGET names; Error when there is none of that name. Before a command runs.
void use_requested_target();

}  // namespace quern::cli
