// `quern arena --mistakes`: how often a network is wrong, where perfect play is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quern::cli {

struct MistakesOptions {
  std::vector<std::string> runs;      // RUN or RUN@STEP
  bool all = false;                   // every checkpoint of each run
  std::optional<uint64_t> positions;  // of each set of Connect Four or chess; nullopt: 1,000
  uint64_t simulations = 100;
  uint64_t seed = 1;
  size_t threads = 1;
  bool json = false;
};

// Prints a line for each checkpoint.
int show_mistakes(const MistakesOptions& options);

}  // namespace quern::cli
