#include "benchmarks/program/diagnostics_command.h"

#include <fmt/format.h>

#include "benchmarks/program/output.h"
#include "benchmarks/program/training_options.h"
#include "cli/progress.h"

namespace quern::bench {
namespace {

constexpr const char* kExamples = R"(Examples:
  quern bench diagnostics                         preset tiny on every core
  quern bench diagnostics --preset small --json

Trains one model in interleaved rounds: without diagnostics, with each diagnostic alone, and with all of them, each in
every step. Reports the median of each kind; with all diagnostics, the speed must be at least 0.98 of that without.)";

}  // namespace

cli::Parser add_diagnostics_bench(cli::Parser root, DiagnosticsBenchOptions& options) {
  cli::Parser command = root.add_command("diagnostics", "Overhead of the profiler and other diagnostics");
  add_training_bench_options(command, options);
  command.set_footer(kExamples);
  return command;
}

int run_diagnostics_bench(const DiagnosticsBenchOptions& options) {
  cli::Progress progress;
  progress.show("measuring the machine");
  Context context(report::measure_machine(options.threads, options.quick), nullptr, options.threads, options.quick);
  progress.show(fmt::format("training {}", options.workload.preset));
  bench_diagnostics(context, options.workload);
  progress.clear();
  if (options.json) {
    print_json(results_json(context));
  } else {
    print_header();
    for (const Result& result : context.results()) print_row(result, !options.quick);
  }
  return exit_code(context);
}

}  // namespace quern::bench
