// quern bench diagnostics: training with diagnostics compared to training without.
#pragma once

#include "benchmarks/diagnostics.h"
#include "cli/parser.h"

namespace quern::bench {

struct DiagnosticsBenchOptions {
  DiagnosticsWorkload workload;
  size_t threads = 1;
  bool json = false;
  bool quick = false;
};

cli::Parser add_diagnostics_bench(cli::Parser root, DiagnosticsBenchOptions& options);

int run_diagnostics_bench(const DiagnosticsBenchOptions& options);

}  // namespace quern::bench
