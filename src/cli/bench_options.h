// Options that the benchmarks of whole training steps share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/whole_number.h"
#include "train/config.h"

namespace quern::cli {

// --preset, --threads, --rounds, --json and --quick, into the fields of these names.
template <typename Options>
void add_training_bench_options(CLI::App& command, Options& options) {
  std::vector<std::string> names;
  for (const std::string_view name : train::preset_names()) names.emplace_back(name);
  command.add_option("--preset", options.workload.preset, "tiny, small or gpt2")
      ->check(CLI::IsMember(names).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  add_threads_option(command, options.threads);
  command.add_option("--rounds", options.workload.rounds, "Timed rounds of each kind")
      ->transform(whole_number(size_t{1}, size_t{1000}))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--json", options.json, "Print one JSON object");
  command.add_flag("--quick", options.quick, "One short round; does not judge bars");
}

}  // namespace quern::cli
