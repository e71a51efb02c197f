// The commands of the program, one file each. Adding one: write its file, declare it here, name it in main.cc.
#pragma once

#include "cli/parser.h"

namespace quern::cli {

// Each adds its command, with flags and help, to `root`.
Command add_info(Parser root);
Command add_train(Parser root);
Command add_generate(Parser root);
Command add_eval(Parser root);
Command add_report(Parser root);
Command add_tokenize(Parser root);
Command add_plan(Parser root);
Command add_rerun_step(Parser root);

// `quern bench` is a program of its own, quern-bench beside this one, so that this one is built without benchmarks.
bool names_bench(int argc, char** argv);  // whether the first word is "bench"
void list_bench(Parser root);             // in the help
int run_bench_program(char** argv);       // replaces this process; Error when the program is not there

}  // namespace quern::cli
