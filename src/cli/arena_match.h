// `quern arena --against`: a match of a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace quern::cli {

struct MatchOptions {
  std::string run;      // RUN or RUN@STEP
  std::string against;  // the same, or random, or perfect
  uint64_t games = 100;
  uint64_t simulations = 100;
  std::optional<uint64_t> opening_moves;  // nullopt: default_opening_moves()
  uint64_t seed = 1;
  size_t threads = 1;
  bool json = false;
};

// Plays the match and prints its result.
int show_match(const MatchOptions& options);

}  // namespace quern::cli
