// quern data batches: the tokens of a run's steps.
#pragma once

#include <cstdint>
#include <string>

namespace quern::cli {

// Prints the sequences that steps first ... first + steps - 1 of a run train on: one JSON object per step, with the
// tokens, targets and positions of every sequence.
int show_batches(const std::string& run, uint64_t first, uint64_t steps);

}  // namespace quern::cli
