// quern bench diagnostics: training with everything that watches it, beside training with nothing.
#pragma once

#include <CLI/CLI.hpp>

#include "benchmarks/diagnostics.h"

namespace quern::cli {

struct DiagnosticsBenchOptions {
  bench::DiagnosticsWorkload workload;
  size_t threads = 1;
  bool json = false;
  bool quick = false;
};

CLI::App* add_diagnostics_bench(CLI::App& bench, DiagnosticsBenchOptions& options);

int run_diagnostics_bench(const DiagnosticsBenchOptions& options);

}  // namespace quern::cli
