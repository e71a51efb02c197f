#include "run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ranges>

#include "checkpoint/folder.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "formats/model_files.h"
#include "run/run_lock.h"
#include "run/run_ranks.h"
#include "run/source_run.h"
#include "run/training_run.h"

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

// Error unless a run can be started in `folder` without touching unrelated files.
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

// So that a start that failed, as on a full disk, can be tried again. The folder is locked, and was free before.
void remove_left_by_start(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kConfigFile, ignored)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (is_left_by_start(entry.path())) fs::remove_all(entry.path(), ignored);
  }
}

void write_start(Run& run, const fs::path& folder, bool writes) try { run.write_files(); } catch (...) {
  if (writes) remove_left_by_start(folder);
  throw;
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

// The state of a run that has finished; nullopt for any other. Reads no tensors unless a checkpoint is of the last
// step.
std::optional<RunState> final_state(const RunConfig& config, const fs::path& folder) {
  const fs::path checkpoints = folder / kCheckpointFolder;
  const std::vector<uint64_t> steps = checkpoint::list_steps(checkpoints);
  if (steps.empty() || steps.back() < config.train.steps) return std::nullopt;
  const auto newest = checkpoint::find_newest_valid(checkpoints, {});
  return newest && newest->state().step >= config.train.steps ? std::optional(newest->state()) : std::nullopt;
}

RunResult finished_before(const RunState& state) {
  return {.step = state.step,
          .finished = true,
          .loss = state.loss,
          .validation_loss = state.validation_loss,
          .resumed = false};
}

// AgreedError unless all ranks see the directory of rank 0, by the lock that it has written there.
void check_shared(const fs::path& folder, const RunRanks& ranks) {
  if (!ranks.several()) return;
  std::string text = "none";
  try {
    text = read_file(folder / kLockFile, 1000);
  } catch (const Error&) {
    // not there
  }
  ranks.check_same(fmt::format("{}: {} in a directory that all ranks share", folder.string(), kLockFile), text);
}

Warn warn_of(Observer& observer) {
  return [&observer](const std::string& text) { observer.on_warning(text); };
}

// The result of body(). If it fails, the other ranks end as well.
template <typename Body>
RunResult ending_all(const RunRanks& ranks, Body body) try {
  return body();
} catch (const StoppedEarly&) {
  return {.prepared = false};
} catch (const AgreedError&) {
  throw;
} catch (...) {
  ranks.abort();
  throw;
}

}  // namespace

RunResult start_run(const RunConfig& config, const fs::path& folder, Observer& observer, const std::atomic<bool>& stop,
                    dist::Communicator* communicator) {
  const RunRanks ranks(communicator);
  return ending_all(ranks, [&] {
    std::optional<Run> run;
    ranks.agree([&] {
      if (ranks.writes()) check_free(folder);
      check_newest(config);
      RunConfig started = config;
      if (started.train.lanes == 0) started.train.lanes = std::bit_ceil(ranks.place().ranks);
      validate(started);
      const bool from_other = !started.init.from.empty();
      fs::path tokenizer;
      if (from_other) {
        tokenizer = resolve_source(started, warn_of(observer));
      } else if (ranks.writes() || !config.data.broadcast) {
        tokenizer = given_tokenizer(started);
      }
      run.emplace(started, folder, tokenizer, observer, stop, ranks);
    });
    run->join_ranks();
    std::optional<RunLock> lock;
    ranks.agree([&] {
      run->begin();
      if (!ranks.writes()) return;
      create_folders(folder);
      lock.emplace(folder, observer);
      check_free(folder);  // another process may have started a run during data preparation
    });
    check_shared(folder, ranks);
    write_start(*run, folder, ranks.writes());
    return run->train();
  });
}

void preview_run(const RunConfig& config, Observer& observer, const std::atomic<bool>& stop) {
  const RunRanks ranks(nullptr);
  RunConfig started = config;
  validate(started);
  const fs::path tokenizer =
      started.init.from.empty() ? given_tokenizer(started) : resolve_source(started, warn_of(observer));
  Run run(started, {}, tokenizer, observer, stop, ranks);
  run.join_ranks();
  run.preview();
}

RunResult resume_run(const RunConfig& config, const fs::path& folder, Observer& observer, const std::atomic<bool>& stop,
                     dist::Communicator* communicator) {
  const RunRanks ranks(communicator);
  return ending_all(ranks, [&]() -> RunResult {
    std::optional<RunLock> lock;
    std::optional<Run> run;
    std::optional<RunState> end;
    RunConfig own;
    ranks.agree([&] {
      validate_settings(config);
      check_started(folder);
      if (ranks.writes()) lock.emplace(folder, observer);
      own = read_config(folder);
      validate(own);
      check_newest(own);
      RunConfig wanted = config;
      if (wanted.train.lanes == 0) wanted.train.lanes = own.train.lanes;
      check_resumable(own, wanted, folder.string());
      if (!has_changes(own, wanted)) end = final_state(own, folder);
      if (end && end->data == data::Fingerprint{}) refuse_imported(folder);
      if (!end) run.emplace(wanted, folder, folder / kTokenizerFile, observer, stop, ranks);
    });
    check_shared(folder, ranks);
    if (end && ranks.writes()) remove_leftovers(folder);
    if (end) return finished_before(*end);
    run->join_ranks();
    run->resume(own);
    return run->train();
  });
}

}  // namespace quern::train
