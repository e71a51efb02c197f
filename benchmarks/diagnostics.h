// The overhead of diagnostics.
#pragma once

#include <string>

#include "benchmarks/harness.h"

namespace quern::bench {

struct DiagnosticsWorkload {
  std::string preset = "tiny";
  size_t rounds = 80;  // the median of each kind is reported
};

// Trains the same model with all diagnostics off, with each one alone, and with all of them, in interleaved rounds;
// with all of them, the speed must be at least 0.98 of that without. Also measures a single timed region, in a thread
// that is not profiled and in one that is.
void bench_diagnostics(Context& context, const DiagnosticsWorkload& workload);

}  // namespace quern::bench
