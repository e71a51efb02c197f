// Reads metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/memory_use.h"

namespace quern::report {

// The logged values of a step. A value that was not finite is NaN.
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
  uint64_t step = 0;           // the failed step
  std::string text;            // what happened
  std::string action;          // stop, skip or rollback
  uint64_t resumed_after = 0;  // the last completed step after the response
  std::string folder;          // in incidents/; empty if it could not be saved
};

struct RunLog {
  std::vector<LoggedStep> steps;  // ascending, without duplicates
  std::vector<LoggedWarning> warnings;
  std::vector<LoggedIncident> incidents;
  std::vector<std::string> damaged;  // skipped lines: "metrics.jsonl:17: expected ..., found ..."
};

// If a step was logged several times, the last line wins, field by field. Unknown fields are ignored. Empty if the file
// does not exist; Error if it cannot be read. Reads only the last `limit` bytes, from the first line that begins there;
// the numbers of damaged lines are then counted from that one.
RunLog read_run_log(const std::filesystem::path& file, uint64_t limit = UINT64_MAX);

// A header and a line per step; values that were not logged are empty.
std::string to_csv(const RunLog& log);
// The two apart. `prefix` starts every line.
std::string csv_header();
std::string csv_lines(const RunLog& log, std::string_view prefix = {});

}  // namespace quern::report
