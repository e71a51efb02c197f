// Output of `quern bench`: a table printed row by row, or one JSON object.
#pragma once

#include "benchmarks/harness.h"
#include "cli/machine_json.h"

namespace quern::bench {

using cli::Json;

// Prints to standard output immediately, one line per call.
void print_machine(const report::Machine& machine, const Peers* peers);
void print_header();
void print_row(const Result& result, bool judged);  // judged is false with --quick

// GEMM's geometric mean against its peer, and the number of missed bars.
void print_summary(const Context& context);

// {"machine": {...}, "results": [...]}
Json results_json(const Context& context);
void print_json(const Json& object);

// 0, or 1 when a bar was missed or an answer was wrong.
int exit_code(const Context& context);

}  // namespace quern::bench
