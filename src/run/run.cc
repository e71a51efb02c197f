#include "run/run.h"

#include <fmt/format.h>

#include <bit>

#include "checkpoint/folder.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "run/run_directory.h"
#include "run/run_lock.h"
#include "run/run_ranks.h"
#include "run/source_run.h"
#include "run/training_run.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

void write_start(Run& run, const fs::path& folder, bool writes) try { run.write_files(); } catch (...) {
  if (writes) remove_left_by_start(folder);
  throw;
}

void expect_text(const RunConfig& config) {
  if (!config.is_selfplay()) return;
  throw Error("[config] selfplay.game: expected none for a run that trains on text, found {}; use `quern selfplay {}`",
              config.selfplay.game, config.selfplay.game);
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
      expect_text(config);
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
  expect_text(started);
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
      expect_text(own);
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
