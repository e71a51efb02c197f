#include "run/run.h"

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "run/run_lock.h"
#include "run/training_run.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// Whether a start killed before it wrote the config can leave this file, apart from the lock.
bool is_left_by_start(const std::string& name) { return name == kTokenizerFile || is_temporary_name(name); }

// Error unless a run can be started in `folder` without touching unrelated files.
void check_free(const fs::path& folder) {
  expect_folder(folder);
  if (fs::exists(folder / kConfigFile)) {
    throw Error("[run] {}: holds a run already; resume it (--resume) or choose another folder", folder.string());
  }
  if (!checkpoint::list_steps(folder / kCheckpointFolder).empty()) {
    throw Error("[run] {}: expected an empty folder, found checkpoints without a {}; choose another folder",
                folder.string(), kConfigFile);
  }
  if (!fs::is_directory(folder)) return;
  const fs::path lock = folder / kLockFile;
  const bool locked = is_run_lock(lock), started = locked && fs::file_size(lock) > 0;  // an empty one proves nothing
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if ((locked && name == kLockFile) || (started && is_left_by_start(name))) continue;
    throw Error("[run] {}: expected a new or empty folder, found {} in it; choose another folder", folder.string(),
                in_quotes(name));
  }
}

// Error unless the directory has a checkpoint, or a config.toml with train.seed, as every started run writes. Otherwise
// an empty config.toml, or one of another program, would be taken for a run with default settings.
void check_started(const fs::path& folder) {
  if (!checkpoint::list_steps(folder / kCheckpointFolder).empty()) return;
  const fs::path config = folder / kConfigFile;
  if (sets_field(config, "train.seed")) return;
  throw Error(
      "[run] {}: expected a run with a checkpoint or with train.seed in its {}, found neither; start a new run "
      "with --config",
      folder.string(), kConfigFile);
}

}  // namespace

RunResult start_run(const RunConfig& config, const fs::path& folder, Observer& observer,
                    const std::atomic<bool>& stop) try {
  check_free(folder);
  validate(config);
  Run run(config, folder, given_tokenizer(config), observer, stop);
  run.initialise();
  create_folders(folder);
  const RunLock lock(folder, observer);
  check_free(folder);  // another process may have started a run during data preparation
  run.write_files();
  return run.train();
} catch (const StoppedEarly&) {
  return {.prepared = false};
}

RunResult resume_run(const RunConfig& config, const fs::path& folder, Observer& observer,
                     const std::atomic<bool>& stop) try {
  validate(config);
  check_started(folder);
  const RunLock lock(folder, observer);
  Run run(config, folder, folder / kTokenizerFile, observer, stop);
  if (!run.load()) run.initialise();
  return run.train();
} catch (const StoppedEarly&) {
  return {.prepared = false};
}

}  // namespace quern::train
