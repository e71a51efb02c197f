// metrics.jsonl read again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/memory_use.h"

namespace quern::report {

// All that is known of a step. A value that was not finite is NaN.
struct LoggedStep {
  uint64_t step = 0;
  std::optional<double> loss, validation_loss, rate, gradient_norm, tokens_per_s, elapsed;
  bool skipped = false;
  std::optional<train::MemoryUse> memory;
};

struct LoggedWarning {
  uint64_t step = 0;
  std::string text;
};

struct LoggedIncident {
  uint64_t step = 0;           // that went wrong
  std::string text;            // what happened
  std::string action;          // stop, skip or rollback
  uint64_t goes_on_after = 0;  // the step that was the last one done then
  std::string folder;          // in incidents/; empty when it could not be saved
};

struct RunLog {
  std::vector<LoggedStep> steps;  // ascending, each once
  std::vector<LoggedWarning> warnings;
  std::vector<LoggedIncident> incidents;
  std::vector<std::string> damaged;  // "metrics.jsonl:17: expected ..., found ...": lines that were left out
};

// Where a step was logged several times, the later line wins, field by field. Fields that are not known are passed
// over. Empty when there is no such file; Error when it cannot be read.
RunLog read_run_log(const std::filesystem::path& file);

// A header and a line per step; what was not logged is empty.
std::string to_csv(const RunLog& log);

}  // namespace quern::report
