// How `quern bench` shows its results: a table that grows, or one JSON object.
#pragma once

#include "benchmarks/harness.h"
#include "cli/machine_json.h"

namespace quern::bench {

using cli::Json;

// To standard output, a line each, at once.
void print_machine(const report::Machine& machine, const Peers* peers);
void print_header();
void print_row(const Result& result, bool judged);  // not judged: --quick

// GEMM's geometric mean against its peer, and how many bars were missed.
void print_summary(const Context& context);

// {"machine": {...}, "results": [...]}
Json results_json(const Context& context);
void print_json(const Json& object);

// 0, or 1 when a bar was missed or an answer wrong.
int exit_code(const Context& context);

}  // namespace quern::bench
