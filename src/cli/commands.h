// The commands of the program, one file each. Adding one: write its file, declare it here, name it in main.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>

namespace quern::cli {

// What a command does once its line is parsed; returns the exit code: 0 fine, 1 ran and found a failure. Bad input
// throws.
using Run = std::function<int()>;

struct Command {
  CLI::App* parser;
  Run run;
};

// Adds the command's flags and help to `app`.
Command add_info(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_train(CLI::App& app);
Command add_generate(CLI::App& app);
Command add_eval(CLI::App& app);
Command add_report(CLI::App& app);
Command add_tokenize(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_replay_step(CLI::App& app);

// --threads N, 1 to kMostThreads; `threads` starts as the cores that can be used.
void add_threads_option(CLI::App& command, size_t& threads);

}  // namespace quern::cli
