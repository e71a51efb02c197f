// Summary of a run, from its config and its metrics.jsonl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "report/run_log.h"

namespace quern::report {

struct StepLoss {
  uint64_t step = 0;
  double loss = 0;
};

struct Speed {
  double median = 0, slowest = 0, fastest = 0;  // tokens/s of logged steps
};

struct RunSummary {
  uint64_t step = 0, steps = 0;  // the last logged step; the total of the config
  uint64_t tokens = 0;           // up to that step
  double seconds = 0;            // of its steps; 0 if unknown
  std::optional<Speed> speed;
  std::optional<StepLoss> loss, validation, best_validation;  // last and best; the best is finite
  std::optional<train::MemoryUse> memory;                     // the last sample, with the peak of all of them
  uint64_t skipped = 0;                                       // updates
  std::vector<LoggedIncident> incidents;
  std::vector<std::string> warnings;  // in order; damaged lines last
};

// Median, in tokens/s; empty if unknown.
std::string speed_text(const RunSummary& summary);

RunSummary summarise(const train::RunConfig& config, const RunLog& log);

// The summary as a table. `parameters` is the parameter count of the model, if known.
std::string to_text(const RunSummary& summary, const train::RunConfig& config, std::optional<uint64_t> parameters);

}  // namespace quern::report
