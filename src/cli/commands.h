// The commands of the program, one file each. To add one, write its file, declare it here and register it in main.cc.
#pragma once

#include "cli/parser.h"

namespace quern::cli {

// Each function adds its command, with flags and help, to `root`.
Command add_info(Parser root);
Command add_train(Parser root);
Command add_finetune(Parser root);
Command add_selfplay(Parser root);
Command add_play(Parser root);
Command add_arena(Parser root);
Command add_uci(Parser root);
Command add_generate(Parser root);
Command add_chat(Parser root);
Command add_eval(Parser root);
Command add_report(Parser root);
Command add_dashboard(Parser root);
Command add_runs(Parser root);
Command add_import(Parser root);
Command add_export(Parser root);
Command add_tokenize(Parser root);
Command add_data(Parser root);
Command add_plan(Parser root);
Command add_replay(Parser root);
Command add_rerun_step(Parser root);

// `quern bench` executes a separate program, quern-bench, so that quern can be built without the benchmarks.
bool names_bench(int argc, char** argv);  // whether the first argument is "bench"
void list_bench(Parser root);             // adds it to the help
int run_bench_program(char** argv);       // replaces this process; Error if quern-bench does not exist

}  // namespace quern::cli
