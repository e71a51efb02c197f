#include "run/run_directory.h"

#include <algorithm>
#include <ranges>
#include <string>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "formats/model_files.h"
#include "run/run_lock.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// Whether this directory contains only a checkpoint of step 0, complete or not, which a run that starts from another
// one saves before its config.
bool is_initial(const fs::path& checkpoints) {
  return std::ranges::all_of(fs::directory_iterator(checkpoints), [](const fs::directory_entry& entry) {
    return is_temporary_name(entry.path().filename().string()) ||
           (checkpoint::step_of(entry.path()) == 0u && !checkpoint::has_foreign_files(entry.path()));
  });
}

// The same for the folder of the model that a run adapts, whose step may be any.
bool holds_one_checkpoint(const fs::path& base) {
  return std::ranges::all_of(fs::directory_iterator(base), [](const fs::directory_entry& entry) {
    return is_temporary_name(entry.path().filename().string()) ||
           (checkpoint::step_of(entry.path()) && !checkpoint::has_foreign_files(entry.path()));
  });
}

// Whether a start killed before it wrote the config can leave this file, apart from the lock.
bool is_left_by_start(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == kTokenizerFile || formats::is_model_file(name) || is_temporary_name(name) ||
         (name == kCheckpointFolder && is_initial(path)) || (name == kBaseFolder && holds_one_checkpoint(path));
}

}  // namespace

void check_free(const fs::path& folder) {
  expect_folder(folder);
  if (fs::exists(folder / kConfigFile)) {
    throw Error("[run] {}: holds a run already; resume it (--resume) or choose another folder", folder.string());
  }
  const fs::path lock = folder / kLockFile;
  const bool locked = is_run_lock(lock), started = locked && fs::file_size(lock) > 0;  // an empty one proves nothing
  const fs::path checkpoints = folder / kCheckpointFolder;
  if (!checkpoint::list_steps(checkpoints).empty() && !(started && is_initial(checkpoints))) {
    throw Error("[run] {}: expected an empty folder, found checkpoints without a {}; choose another folder",
                folder.string(), kConfigFile);
  }
  if (!fs::is_directory(folder)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if ((locked && name == kLockFile) || (started && is_left_by_start(entry.path()))) continue;
    throw Error("[run] {}: expected a new or empty folder, found {} in it; choose another folder", folder.string(),
                in_quotes(name));
  }
}

void remove_left_by_start(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kConfigFile, ignored)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (is_left_by_start(entry.path())) fs::remove_all(entry.path(), ignored);
  }
}

void check_started(const fs::path& folder) {
  if (!checkpoint::list_steps(folder / kCheckpointFolder).empty()) return;
  const fs::path config = folder / kConfigFile;
  if (sets_field(config, "train.seed")) return;
  throw Error(
      "[run] {}: expected a run with a checkpoint or with train.seed in its {}, found neither; start a new run "
      "with --config",
      folder.string(), kConfigFile);
}

}  // namespace quern::train
