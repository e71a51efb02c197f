#include "cli/bench_diagnostics.h"

#include <fmt/format.h>

#include "cli/bench_options.h"
#include "cli/bench_output.h"
#include "cli/progress.h"

namespace quern::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  quern bench diagnostics                         the preset tiny with every core
  quern bench diagnostics --preset small --json

One model is trained in interleaved rounds: nothing watched, each diagnostic alone, all at once, everything in every
step. The median of each counts, and all at once must keep 0.98 of the speed.)";

}  // namespace

CLI::App* add_diagnostics_bench(CLI::App& bench, DiagnosticsBenchOptions& options) {
  CLI::App* command = bench.add_subcommand("diagnostics", "What profiler and other watchers cost a training");
  add_training_bench_options(*command, options);
  command->footer(kExamples);
  return command;
}

int run_diagnostics_bench(const DiagnosticsBenchOptions& options) {
  Progress progress;
  progress.show("measuring the machine");
  bench::Context context(bench::measure_machine(options.threads, options.quick), nullptr, options.threads,
                         options.quick);
  progress.show(fmt::format("training {}", options.workload.preset));
  bench::bench_diagnostics(context, options.workload);
  progress.clear();
  if (options.json) {
    print_json(results_json(context));
  } else {
    print_header();
    for (const bench::Result& result : context.results()) print_row(result, !options.quick);
  }
  return exit_code(context);
}

}  // namespace quern::cli
