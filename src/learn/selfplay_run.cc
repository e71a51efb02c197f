#include "learn/selfplay_run.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "checkpoint/folder.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/process_memory.h"
#include "evaluate/load.h"
#include "games/game.h"
#include "learn/actor_files.h"
#include "learn/session.h"
#include "learn/settings.h"
#include "run/run_directory.h"
#include "run/run_lock.h"

namespace quern::learn {
namespace {

namespace fs = std::filesystem;

using train::RunConfig;
using train::RunResult;

void expect_selfplay(const RunConfig& config, const std::string& where) {
  if (config.is_selfplay()) return;
  throw Error("[config] {}: expected a run of `quern selfplay`, found one that trains on text", where);
}

// What is played or trained on.
struct Rules {
  Rules(const RunConfig& config, const SelfplayOptions& options) {
    if (options.own != nullptr) {
      shape = &options.own->shape;
    } else {
      if (options.game == nullptr) made = games::make_game(config.selfplay.game);
      game = made ? made.get() : options.game;
      shape = game;
    }
    board_config(config, shape->spec());  // an Error if it is another game, or cannot be built
  }

  std::unique_ptr<games::Game> made;
  const games::Game* game = nullptr;
  const games::GameShape* shape = nullptr;
};

// The settings of the next step, and the last step with these settings.
struct Part {
  RunConfig config;
  uint64_t last_step;
};

Part part_after(const RunConfig& config, uint64_t step) {
  const std::optional<uint64_t> change = train::next_change(config, step + 1);
  return {train::config_at(config, step + 1), change ? *change - 1 : config.train.steps};
}

// From the step after that of `saved`, or from the beginning, to the end of the run.
RunResult play(const RunConfig& config, const Rules& rules, const fs::path& folder, train::Observer& observer,
               const SelfplayOptions& options, std::optional<checkpoint::Checkpoint> saved) {
  const RunContext run{folder, *rules.shape, rules.game, options.own, observer, options.stop, options.actor_command};
  const std::vector<train::RecordedChange> changes = train::recorded_changes(config);
  Session* current = nullptr;
  Profile* profile = nullptr;
  const auto set_profile = [&](Profile* wanted) {
    profile = wanted;
    current->set_profile(wanted);
  };
  for (bool first = true;; first = false) {
    const uint64_t step = saved ? saved->state().step : 0;
    const Part part = part_after(config, step);
    Session session(run, part.config, part.last_step, saved ? &*saved : nullptr);
    saved.reset();
    current = &session;
    if (first) {
      train::RunStart start = session.start_report(config.train.steps);
      start.set_profile = set_profile;
      observer.on_start(start);
    } else if (profile != nullptr) {
      session.set_profile(profile);
    }
    const auto change = std::ranges::find(changes, step + 1, &train::RecordedChange::from_step);
    observer.on_settings({.first_step = step + 1,
                          .config = part.config,
                          .change = change == changes.end() ? std::string() : train::to_text(*change)});
    session.play();
    const RunState& state = session.state();
    const bool finished = state.step >= config.train.steps;
    if (!finished && state.step >= part.last_step && !options.stop.load()) {
      saved.emplace(folder / train::kCheckpointFolder / checkpoint::directory_name(state.step),
                    checkpoint::Parts::kAll);
      continue;
    }
    observer.on_end(
        {.planned_bytes = session.planned_bytes(), .peak_bytes = peak_resident_bytes(), .finished = finished});
    return {.step = state.step, .finished = finished, .loss = state.loss};
  }
}

}  // namespace

RunResult start_selfplay(const RunConfig& config, const fs::path& folder, train::Observer& observer,
                         const SelfplayOptions& options) {
  expect_selfplay(config, "selfplay.game");
  train::check_newest(config);
  RunConfig started = config;
  if (started.train.lanes == 0) started.train.lanes = 1;
  train::validate(started);
  const Rules rules(started, options);
  train::check_free(folder);
  create_folders(folder);
  const train::RunLock lock(folder, observer);
  train::check_free(folder);
  try {
    remove_leftovers(folder);
    train::write_config(started, folder);
  } catch (...) {
    train::remove_left_by_start(folder);
    throw;
  }
  return play(started, rules, folder, observer, options, std::nullopt);
}

RunResult resume_selfplay(const RunConfig& config, const fs::path& folder, train::Observer& observer,
                          const SelfplayOptions& options) {
  train::validate_settings(config);
  train::check_started(folder);
  const train::RunLock lock(folder, observer);
  const RunConfig own = train::read_config(folder);
  train::validate(own);
  train::check_newest(own);
  expect_selfplay(own, folder.string());
  train::check_resumable(own, config, folder.string());
  const Rules rules(own, options);
  remove_leftovers(folder);
  remove_actor_folder(folder);
  const auto warn = [&observer](const std::string& text) { observer.on_warning(text); };
  auto saved = train::newest_checkpoint(folder, warn, checkpoint::Parts::kEveryFile);
  const uint64_t step = saved ? saved->state().step : 0;
  const bool changed = train::has_changes(own, config);
  if (saved && !changed && step >= own.train.steps) {
    return {.step = step, .finished = true, .loss = saved->state().loss, .resumed = false};
  }
  RunConfig wanted = config;
  wanted.history = own.history;
  if (changed) {
    if (config.train.steps < step) {
      throw Error("[config] train.steps: expected at least {}, the steps that the run has done, found {}", step,
                  config.train.steps);
    }
    const RunConfig recorded = train::with_change(own, config, step + 1);
    wanted.history = recorded.history;
    train::validate(wanted);
    train::write_config(recorded, folder);
  }
  return play(wanted, rules, folder, observer, options, std::move(saved));
}

}  // namespace quern::learn
