#include "cli/run_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <system_error>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "report/find_runs.h"
#include "report/run_log.h"
#include "run/held_locks.h"
#include "run/run_lock.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetricsFile = "metrics.jsonl";
// The end of metrics.jsonl: a logged step takes 350 bytes, a line about the health of GPT-2's 148 tensors 18 kB.
constexpr uint64_t kTail = 64 << 10, kLongTail = 4 << 20;
// A lock of another machine counts as held for this long after the last write: steps of a large model take minutes.
constexpr int64_t kSilence = 3600;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

int64_t changed_at(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<int64_t>(status.st_mtime) : 0;
}

// Files that vanish meanwhile, as checkpoints do, and directories that cannot be read count as nothing.
uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    struct stat status = {};
    if (::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      bytes += static_cast<uint64_t>(status.st_size);
    }
  }
  return bytes;
}

// The end of the log: all that is needed, unless a single line is longer.
report::RunLog read_end(const fs::path& file) {
  report::RunLog log = report::read_run_log(file, kTail);
  return log.steps.empty() ? report::read_run_log(file, kLongTail) : log;
}

void take(ListedRun& run, const report::RunSummary& summary) {
  run.step = summary.step;
  if (summary.loss) run.loss = summary.loss->loss;
  run.best = summary.best_validation;
}

// The state of the newest readable checkpoint; nullopt if there is no checkpoint, Error if all are damaged. A run that
// saves often replaces them while they are read; then there are others.
std::optional<RunState> newest_state(const fs::path& folder) {
  std::vector<uint64_t> listed = checkpoint::list_steps(folder), steps = listed;
  while (!steps.empty()) {
    try {
      return checkpoint::read_state(folder / checkpoint::directory_name(steps.back())).state;
    } catch (const Error&) {
      if (steps.size() > 1) {
        steps.pop_back();
        continue;
      }
      steps = checkpoint::list_steps(folder);
      if (steps == listed) throw;
      listed = steps;
    }
  }
  return std::nullopt;
}

// The state knows the best loss of the whole run, which the end of the log may not.
void take(ListedRun& run, const RunState& state) {
  run.step = std::max(run.step, state.step);
  if (!state.best_validation_loss || (run.best && run.best->loss <= *state.best_validation_loss)) return;
  run.best = report::StepLoss{state.best_step, *state.best_validation_loss};
}

bool stopped_by_incident(const report::RunLog& log, uint64_t step) {
  return !log.incidents.empty() && log.incidents.back().action == "stop" && log.incidents.back().resumed_after >= step;
}

RunStatus status_of(const ListedRun& run, const report::RunLog& log, train::LockStatus lock) {
  const bool silent = std::time(nullptr) - run.changed > kSilence;
  if (lock == train::LockStatus::kHeld) return RunStatus::kRunning;
  if (lock == train::LockStatus::kElsewhere && !silent) return RunStatus::kRunning;
  if (run.step >= run.steps) return RunStatus::kFinished;
  if (lock != train::LockStatus::kNone || stopped_by_incident(log, run.step)) return RunStatus::kFailed;
  return RunStatus::kStopped;
}

ListedRun describe(const fs::path& folder, const train::HeldLocks& locks) {
  ListedRun run;
  run.path = folder;
  for (const char* name : {train::kConfigFile, kMetricsFile, train::kCheckpointFolder}) {
    run.changed = std::max(run.changed, changed_at(folder / name));
  }
  run.bytes = bytes_in(folder);
  try {
    const train::LockStatus lock = locks.of(folder);
    const train::RunConfig config = train::read_config(folder);
    const report::RunLog log = read_end(folder / kMetricsFile);
    run.steps = config.train.steps;
    take(run, report::summarise(config, log));
    if (const auto state = newest_state(folder / train::kCheckpointFolder)) take(run, *state);
    run.status = status_of(run, log, lock);
  } catch (const std::exception& error) {  // also what std::filesystem throws if a directory cannot be searched
    run.status = RunStatus::kDamaged;
    run.problem = error.what();
  }
  return run;
}

}  // namespace

std::string_view status_name(RunStatus status) {
  constexpr std::string_view kNames[] = {"running", "finished", "stopped", "failed", "damaged"};
  return kNames[static_cast<size_t>(status)];
}

std::vector<ListedRun> list_runs(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    throw Error("[runs] {}: expected a directory with runs, found {}; `quern runs DIR` lists those below DIR",
                folder.string(), is_there(folder) ? "a file" : "none");
  }
  std::vector<ListedRun> runs;
  const train::HeldLocks locks;
  report::search_runs(
      folder, [&](const fs::path& run) { runs.push_back(describe(run, locks)); },
      [&](const fs::path& path, std::error_code code) {
        ListedRun& unreadable = runs.emplace_back();
        unreadable.path = path;
        unreadable.problem = "cannot be read: " + code.message();
      });
  std::sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.path < b.path;
  });
  return runs;
}

}  // namespace quern::cli
