// A run of self-play: like one that trains on text (run/run.h), with games instead of text.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "games/game.h"
#include "learn/own_rows.h"
#include "run/observer.h"
#include "run/run.h"

namespace quern::learn {

struct SelfplayOptions {
  const std::atomic<bool>& stop;  // set by any thread: the run saves and returns
  // Starts an actor process, which calls run_actor() of learn/actor_process.h; empty: actors are threads only.
  std::vector<std::string> actor_command = {};
  const games::Game* game = nullptr;  // the rules, if games::make_game() does not know selfplay.game
  const OwnRows* own = nullptr;       // for a run that trains on rows of the caller's actors
};

// As start_run() and resume_run(). `config` has selfplay.game. A synchronous run that is resumed is bit-identical to an
// uninterrupted one; it repeats the games that were in progress, and at most one generation of them.
train::RunResult start_selfplay(const train::RunConfig& config, const std::filesystem::path& folder,
                                train::Observer& observer, const SelfplayOptions& options);
train::RunResult resume_selfplay(const train::RunConfig& config, const std::filesystem::path& folder,
                                 train::Observer& observer, const SelfplayOptions& options);

}  // namespace quern::learn
