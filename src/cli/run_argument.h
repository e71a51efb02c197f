// The run that a command reads: `quern info RUN` or `quern info --run RUN`.
#pragma once

#include <string>
#include <vector>

#include "cli/parser.h"

namespace quern::cli {

struct RunArgument {
  std::string flag;  // of --run
  std::string word;  // the first positional argument

  bool given() const { return !flag.empty() || !word.empty(); }
};

// Adds RUN and --run RUN. `run` must outlive parsing.
void add_run(Parser command, RunArgument& run, const std::string& help);

// The run; Error if there is none, or if both forms name one. `command` is its name, for messages.
std::string run_of(const RunArgument& run, const std::string& command);

// For commands with further positional arguments, all of which are in `words`: removes the first one and returns it,
// unless --run was given.
std::string take_run(const std::string& flag, std::vector<std::string>& words, const std::string& command);

}  // namespace quern::cli
