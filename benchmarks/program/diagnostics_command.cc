#include "benchmarks/program/diagnostics_command.h"

#include <fmt/format.h>

#include "benchmarks/program/output.h"
#include "benchmarks/program/training_options.h"
#include "cli/progress.h"

namespace quern::bench {
namespace {

constexpr const char* kExamples = R"(Examples:
  quern bench diagnostics                         the preset tiny with every core
  quern bench diagnostics --preset small --json

One model is trained in interleaved rounds: nothing watched, each diagnostic alone, all at once, everything in every
step. The median of each counts, and all at once must keep 0.98 of the speed.)";

}  // namespace

cli::Parser add_diagnostics_bench(cli::Parser root, DiagnosticsBenchOptions& options) {
  cli::Parser command = root.add_command("diagnostics", "What profiler and other watchers cost a training");
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
