// What watching a run costs.
#pragma once

#include <string>

#include "benchmarks/harness.h"

namespace quern::bench {

struct DiagnosticsWorkload {
  std::string preset = "tiny";
  size_t rounds = 80;  // of which the median of each kind counts
};

// Trains one and the same model with everything switched off, with each diagnostic alone, and with all of them, in
// interleaved rounds; all at once must keep 0.98 of the speed. Also a timed region by itself, in a thread that is not
// profiled and in one that is.
void bench_diagnostics(Context& context, const DiagnosticsWorkload& workload);

}  // namespace quern::bench
