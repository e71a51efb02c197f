#include "learn/selfplay_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "learn/saved_network.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"

namespace quern::learn {
namespace {

namespace fs = std::filesystem;
using train::RunConfig;
using train::RunResult;

// Collects what is reported, and sets the stop flag at a chosen event.
struct Watcher : train::Observer {
  void on_step(const train::StepReport& report) override {
    losses.push_back(report.loss);
    if (report.step == stop_after) stop = true;
  }
  void on_selfplay(const train::SelfplayReport& report) override {
    if (report.complete) generations.push_back(report);
    if (generations.size() >= stop_after_generations) stop = true;
  }
  void on_rating(const train::RatingReport& report) override { ratings.push_back(report); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_settings(const train::SettingsReport& report) override { changes.push_back(report.change); }

  std::atomic<bool> stop{false};
  uint64_t stop_after = UINT64_MAX, stop_after_generations = UINT64_MAX;
  std::vector<double> losses;
  std::vector<train::SelfplayReport> generations;
  std::vector<train::RatingReport> ratings;
  std::vector<std::string> warnings, changes;
};

class SelfplayRun : public ::testing::Test {
 protected:
  // Games of a few milliseconds, and a buffer that is full before the end.
  static RunConfig small_config() {
    RunConfig config = train::selfplay_preset("tictactoe");
    config.model.width = 16;
    config.model.layers = 1;
    config.train.steps = 24;
    config.train.batch = 16;
    config.train.threads = 2;
    config.optimizer.warmup = 2;
    config.selfplay.generation_games = 12;
    config.selfplay.generation_steps = 4;
    config.selfplay.simulations = 12;
    config.selfplay.cheap_simulations = 4;
    config.selfplay.games_at_once = 5;
    config.selfplay.rows = 100;
    config.selfplay.rating_interval = 2;
    config.selfplay.rating_games = 4;
    config.checkpoint.interval = 4;
    return config;
  }

  static RunConfig asynchronous(RunConfig config) {
    config.selfplay.synchronous = false;
    config.selfplay.samples_per_row = 2;
    return config;
  }

  RunResult start(const RunConfig& config, const std::string& name) {
    return start_selfplay(config, root_ / name, watcher_, {.stop = watcher_.stop});
  }
  // With these settings instead of the run's own, if `change` is given.
  RunResult resume(const std::string& name, const std::function<void(RunConfig&)>& change = {}) {
    RunConfig config = train::read_config(root_ / name);
    if (change) change(config);
    watcher_.stop = false;
    return resume_selfplay(config, root_ / name, watcher_, {.stop = watcher_.stop});
  }

  std::string hash(const std::string& name) {
    const auto found = checkpoint::find_newest_valid(root_ / name / "checkpoints", {});
    return found ? checkpoint::weights_hash(found->model()) : "none";
  }
  std::string hash_of(const RunConfig& config, const std::string& name) {
    EXPECT_TRUE(start(config, name).finished);
    return hash(name);
  }

  test::TemporaryFolder root_;
  Watcher watcher_;
};

TEST_F(SelfplayRun, TheResultDoesNotDependOnThreadsBatchesOrTheCache) {
  const std::string expected = hash_of(small_config(), "two");
  EXPECT_EQ(watcher_.losses.size(), 24u);
  EXPECT_EQ(watcher_.generations.size(), 6u);
  EXPECT_EQ(watcher_.generations.back().games, 72u);
  EXPECT_EQ(watcher_.ratings.size(), 3u);
  for (const size_t threads : {1, 5}) {
    RunConfig config = small_config();
    config.train.threads = threads;
    EXPECT_EQ(hash_of(config, "threads-" + std::to_string(threads)), expected);
  }
  RunConfig config = small_config();
  config.selfplay.games_at_once = 64;
  config.selfplay.cache = 0;
  config.selfplay.rating_interval = 0;
  EXPECT_EQ(hash_of(config, "batches"), expected);
  config.train.seed = 2;
  EXPECT_NE(hash_of(config, "seed"), expected);
}

TEST_F(SelfplayRun, TheResultDoesNotDependOnRecomputationOrAccumulation) {
  RunConfig config = small_config();
  config.model.layers = 4;
  const std::string expected = hash_of(config, "whole");
  config.train.recompute = {.kind = train::Recompute::Kind::kSqrt};
  config.train.batch = 4;
  config.train.accumulation = 4;
  EXPECT_EQ(hash_of(config, "other"), expected);
}

TEST_F(SelfplayRun, EveryLagIsReproducible) {
  for (const uint64_t lag : {0, 2}) {
    RunConfig config = small_config();
    config.selfplay.lag = lag;
    const std::string name = "lag-" + std::to_string(lag);
    const std::string expected = hash_of(config, name);
    config.train.threads = 3;
    watcher_.stop_after = 14;
    EXPECT_FALSE(start(config, name + "-stopped").finished);
    watcher_.stop_after = UINT64_MAX;
    EXPECT_TRUE(resume(name + "-stopped").finished);
    EXPECT_EQ(hash(name + "-stopped"), expected);
  }
}

TEST_F(SelfplayRun, StoppedAtAnyStepAndResumedIsBitIdentical) {
  const std::string expected = hash_of(small_config(), "whole");
  for (uint64_t step = 1; step < 24; step += 3) {
    const std::string name = "stopped-" + std::to_string(step);
    watcher_.stop_after = step;
    EXPECT_FALSE(start(small_config(), name).finished);
    watcher_.stop_after = UINT64_MAX;
    EXPECT_TRUE(resume(name).finished);
    EXPECT_EQ(hash(name), expected) << "stopped after step " << step;
  }
}

// Asked to stop when a generation is trained: the run notices it while it waits for the games of the next one, which
// take far longer. With a lag of 1, they began during the training.
TEST_F(SelfplayRun, StoppedWhileGamesArePlayedAndResumedIsBitIdentical) {
  for (const uint64_t lag : {0u, 1u}) {
    RunConfig config = small_config();
    config.selfplay.generation_games = 300;
    config.selfplay.games_at_once = 2;
    config.selfplay.simulations = config.selfplay.cheap_simulations = 1000;
    config.selfplay.lag = lag;
    config.train.steps = 12;
    const std::string name = "lag-" + std::to_string(lag), expected = hash_of(config, name);
    watcher_.generations.clear();
    watcher_.stop_after_generations = 1;
    const RunResult stopped = start(config, name + "-stopped");
    ASSERT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.step, 4u);
    watcher_.stop_after_generations = UINT64_MAX;
    EXPECT_TRUE(resume(name + "-stopped").finished);
    EXPECT_EQ(hash(name + "-stopped"), expected);
  }
}

TEST_F(SelfplayRun, AnExtendedRunIsThatOfItsHistory) {
  RunConfig config = small_config();
  config.train.steps = 10;  // in the middle of a generation
  start(config, "run");
  EXPECT_EQ(resume("run").resumed, false);
  const RunResult extended = resume("run", [](RunConfig& wanted) {
    wanted.train.steps = 20;
    wanted.optimizer.rate = 1e-3;
  });
  EXPECT_TRUE(extended.finished);
  EXPECT_EQ(extended.step, 20u);
  const RunConfig recorded = train::read_config(root_ / "run");
  EXPECT_EQ(recorded.history.size(), 2u);
  EXPECT_EQ(hash_of(recorded, "again"), hash("run"));
  EXPECT_NE(watcher_.changes.back().find("optimizer.rate"), std::string::npos) << watcher_.changes.back();
}

TEST_F(SelfplayRun, ADamagedCheckpointIsSkipped) {
  const std::string expected = hash_of(small_config(), "whole");
  watcher_.stop_after = 16;
  start(small_config(), "run");
  const fs::path newest = root_ / "run/checkpoints/step-00000016";
  ASSERT_TRUE(fs::exists(newest / "rows.replay"));
  fs::resize_file(newest / "rows.replay", fs::file_size(newest / "rows.replay") - 1);
  watcher_.stop_after = UINT64_MAX;
  EXPECT_TRUE(resume("run").finished);
  EXPECT_EQ(hash("run"), expected);
  EXPECT_FALSE(watcher_.warnings.empty());
}

TEST_F(SelfplayRun, AsynchronousThreadsLearnStopAndResume) {
  const test::Watchdog watchdog("an asynchronous run");
  watcher_.stop_after = 13;
  EXPECT_FALSE(start(asynchronous(small_config()), "run").finished);
  watcher_.stop_after = UINT64_MAX;
  const RunResult result = resume("run");
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.step, 24u);
  EXPECT_GT(watcher_.generations.back().games, 10u);
}

TEST_F(SelfplayRun, TheBufferLimitsHowOftenARowIsUsed) {
  const test::Watchdog watchdog("an asynchronous run");
  RunConfig config = asynchronous(small_config());
  config.train.steps = 200;
  config.selfplay.rows = 100'000;
  start(config, "run");
  const double rows = static_cast<double>(watcher_.generations.back().rows);
  const double samples = 200.0 * 16;
  EXPECT_GT(rows, samples / 2 * 0.5);  // each about twice, but for the slack of the limit at the beginning
}

TEST_F(SelfplayRun, NetworksOfRunsAreOpenedByGame) {
  start(small_config(), "run");
  const auto ignore = [](const std::string&) {};
  const SavedNetwork newest = load_network(root_ / "run", ignore);
  EXPECT_EQ(newest.step, 24u);
  EXPECT_EQ(newest.game->spec().name, "tictactoe");
  EXPECT_EQ(load_network(root_ / "run@20", ignore, "tictactoe").step, 20u);
  const std::string error = test::message_of([&] { load_network(root_ / "run", ignore, "chess"); });
  EXPECT_NE(error.find("expected a run of `quern selfplay chess`, found one of tictactoe"), std::string::npos) << error;
}

TEST_F(SelfplayRun, BadSettingsAreRefusedAndNothingIsWritten) {
  const auto error_with = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig config = small_config();
    change(config);
    const std::string error = test::message_of([&] { start(config, "bad"); });
    EXPECT_FALSE(fs::exists(root_ / "bad")) << error;
    return error;
  };
  using C = RunConfig;
  EXPECT_NE(error_with([](C& c) { c.model.context = 10; }).find("[config] model.context: expected 9"),
            std::string::npos);
  EXPECT_NE(error_with([](C& c) { c.selfplay.game.clear(); }).find("selfplay"), std::string::npos);
  EXPECT_NE(error_with([](C& c) { c.selfplay.processes = 2; }).find("selfplay.processes: expected 0"),
            std::string::npos);
}

TEST_F(SelfplayRun, WhatDecidesTheGamesCannotChange) {
  start(small_config(), "run");
  const auto error_with = [&](const std::function<void(RunConfig&)>& change) {
    return test::message_of([&] { resume("run", change); });
  };
  using C = RunConfig;
  EXPECT_NE(error_with([](C& c) { c.selfplay.lag = 0; }).find("selfplay.lag: expected 1"), std::string::npos);
  EXPECT_NE(error_with([](C& c) { c.selfplay.rows = 50; }).find("selfplay.rows: expected 100"), std::string::npos);
  EXPECT_NE(error_with([](C& c) { c.train.steps = 8; }).find("expected at least 24"), std::string::npos);
}

}  // namespace
}  // namespace quern::learn
