#include "cli/machine_json.h"

#include "cli/version.h"

namespace quern::cli {

Json to_json(const report::Machine& machine) {
  return {{"fma_peak_gflops", machine.fma_peak_gflops},
          {"read_gbs", machine.read_gbs},
          {"copy_gbs", machine.copy_gbs},
          {"threads", machine.threads},
          {"target", machine.target},
          {"fma", machine.fma},
          {"fma_peak_one_gflops", machine.fma_peak_one_gflops},
          {"cpu", machine.cpu},
          {"version", version()},
          {"commit", commit()}};
}

}  // namespace quern::cli
