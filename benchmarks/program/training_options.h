// Options shared by the benchmarks of complete training steps.
#pragma once

#include "benchmarks/train.h"
#include "cli/parser.h"

namespace quern::bench {

// Adds --preset, --threads, --rounds, --json and --quick, stored in the fields of these names.
template <typename Options>
void add_training_bench_options(cli::Parser command, Options& options) {
  command.add_choice("--preset", options.workload.preset, train_presets(), "NAME", "tiny, small or gpt2");
  command.add_threads(options.threads);
  command.add_number("--rounds", options.workload.rounds, "N", "Timed rounds of each kind", {1, 1000});
  command.add_flag("--json", options.json, "Print one JSON object");
  command.add_flag("--quick", options.quick, "One short round; does not check bars");
}

}  // namespace quern::bench
