// Several runs side by side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/config.h"
#include "report/run_log.h"
#include "report/run_summary.h"

namespace quern::report {

struct ComparedRun {
  std::string name;  // as the user typed it
  train::RunConfig config;
  RunLog log;
  RunSummary summary;
};

// A setting that is not equal in all runs, and its value in each, as TOML.
struct SettingDifference {
  std::string setting;
  std::vector<std::string> values;
};
std::vector<SettingDifference> differing_settings(const std::vector<ComparedRun>& runs);

// The runs with a letter each, the settings that differ, and what came out. A block of `width` columns has as many runs
// as fit; more follow in further blocks. There are at most 26 runs.
std::string comparison_text(const std::vector<ComparedRun>& runs, size_t width);

// Every logged step of every run; the first column is the run.
std::string comparison_csv(const std::vector<ComparedRun>& runs);

}  // namespace quern::report
