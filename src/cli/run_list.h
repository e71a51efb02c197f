// Finds the runs below a directory and what can be said of each at a glance.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/run_summary.h"

namespace quern::cli {

enum class RunStatus : uint8_t {
  kRunning,   // a process trains in the directory
  kFinished,  // the last step is done
  kStopped,   // ended in an orderly way before it; --resume continues
  kFailed,    // killed, or stopped by an incident; --resume continues from the newest checkpoint
  kDamaged,   // the directory or its config.toml cannot be read
};
std::string_view status_name(RunStatus status);

struct ListedRun {
  std::filesystem::path path;
  RunStatus status = RunStatus::kDamaged;
  uint64_t step = 0, steps = 0;          // done, of the config
  std::optional<double> loss;            // of the last logged step
  std::optional<report::StepLoss> best;  // the lowest validation loss
  int64_t changed = 0;                   // seconds since 1970: when training last wrote something
  uint64_t bytes = 0;                    // of all files in the directory
  std::string problem;                   // of a damaged one: one line
};

// The runs in `folder` and below it, or the run that `folder` is; those that changed last come first. Does not look
// into runs, and follows no symbolic links. Reads the config, the end of metrics.jsonl and the newest state.json of
// each: no more for a long run than for a short one. A directory that cannot be read becomes a damaged run. Error if
// `folder` is no directory.
std::vector<ListedRun> list_runs(const std::filesystem::path& folder);

}  // namespace quern::cli
