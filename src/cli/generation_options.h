// Flags for how text is generated, for commands that generate some.
#pragma once

#include <string>

#include "cli/parser.h"
#include "generate/generate.h"

namespace quern::cli {

// Adds --tokens, the flags for sampling and --seed. `options`, which has their defaults, must outlive parsing.
void add_generation_options(Parser command, GenerateOptions& options, const std::string& tokens_help);

}  // namespace quern::cli
