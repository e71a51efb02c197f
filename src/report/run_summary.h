// A run in a few numbers, from its config and its metrics.jsonl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/run_log.h"
#include "train/config.h"

namespace quern::report {

struct StepLoss {
  uint64_t step = 0;
  double loss = 0;
};

struct Speed {
  double median = 0, slowest = 0, fastest = 0;  // tokens/s of logged steps
};

struct RunSummary {
  uint64_t step = 0, steps = 0;  // the last that was logged; all that are to be
  uint64_t tokens = 0;           // until then
  double seconds = 0;            // of its steps; 0 when not known
  std::optional<Speed> speed;
  std::optional<StepLoss> loss, validation, best_validation;  // last and best; the best is finite
  std::optional<train::MemoryUse> memory;                     // the last sample, with the peak of all of them
  uint64_t skipped = 0;                                       // updates
  std::vector<LoggedIncident> incidents;
  std::vector<std::string> warnings;  // in order; damaged lines last
};

RunSummary summarise(const train::RunConfig& config, const RunLog& log);

// A table. `parameters` of the model where they are known.
std::string to_text(const RunSummary& summary, const train::RunConfig& config, std::optional<uint64_t> parameters);

}  // namespace quern::report
