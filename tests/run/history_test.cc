// Runs whose settings change: same history, same bits.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "data/batch_source.h"
#include "data/stories.h"
#include "diagnose/incidents.h"
#include "run/run.h"

namespace quern::train {
namespace {

class HistoryTest : public IncidentTest {
 protected:
  static RunConfig small_config() {
    RunConfig config;
    config.model = {.layers = 1, .heads = 2, .width = 16, .context = 16, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 10;
    config.train.batch = 6;
    config.train.threads = 2;
    config.train.validation_interval = 5;
    config.train.validation_batches = 1;
    config.optimizer.warmup = 2;
    config.data.stories_bytes = 20000;
    config.checkpoint.interval = 4;
    return config;
  }

  using Edit = std::function<void(RunConfig&)>;
  // Resumes with changed settings, up to step `stop_after`, or to the end if that is 0.
  RunResult change(const std::string& name, const Edit& edit, uint64_t stop_after = 0) {
    Listener listener;
    listener.stop_after = stop_after;
    RunConfig config = read_config(root_ / name);
    edit(config);
    return resume(config, name, listener);
  }
  RunResult go_on(const std::string& name, uint64_t stop_after = 0) {
    return change(
        name, [](RunConfig&) {}, stop_after);
  }
  void start_until(const RunConfig& config, const std::string& name, uint64_t stop_after = 0) {
    Listener listener;
    listener.stop_after = stop_after;
    start(config, name, listener);
  }
  // The hash of an uninterrupted run with the history of this one.
  std::string replayed(const std::string& name) {
    Listener listener;
    EXPECT_TRUE(start(read_config(root_ / name), name + "-replayed", listener).finished);
    EXPECT_EQ(slurp(name + "/config.toml"), slurp(name + "-replayed/config.toml"));
    return hash_of(name + "-replayed");
  }
  std::string slurp(const std::string& file) const { return read_file(root_ / file, 1 << 20); }
  std::vector<std::string> changes(const std::string& name) const {
    std::vector<std::string> texts;
    for (const RecordedChange& change : recorded_changes(read_config(root_ / name))) texts.push_back(to_text(change));
    return texts;
  }
  void damage(const std::string& name, uint64_t step) const {
    fs::resize_file(root_ / name / "checkpoints" / checkpoint::directory_name(step) / "model.safetensors", 100);
  }
};

void faster(RunConfig& config) {
  config.train.steps = 20;
  config.optimizer.rate = 5e-3;
  config.train.batch = 4;
  config.model.dropout = 0.2;
}

TEST_F(HistoryTest, ExtendedRunEqualsItsHistoryUninterrupted) {
  start_until(small_config(), "run");
  EXPECT_TRUE(change("run", faster).finished);
  EXPECT_EQ(changes("run"), std::vector<std::string>{
                                "from step 11: model.dropout 0.1 -> 0.2, train.steps 10 -> 20, train.batch 6 -> 4, "
                                "optimizer.rate 0.002 -> 0.005"});
  EXPECT_EQ(newest("run").state().tokens, (10 * 6 + 10 * 4) * 16u);
  EXPECT_EQ(newest("run").state().data_position, 10 * 6 + 10 * 4u);
  EXPECT_EQ(replayed("run"), hash_of("run"));
  // The settings make a difference.
  RunConfig other = small_config();
  other.train.steps = 20;
  start_until(other, "other");
  EXPECT_NE(hash_of("other"), hash_of("run"));
}

// With a constant rate, a run that was extended is one that had more steps from the beginning.
TEST_F(HistoryTest, ExtensionAtAConstantRateEqualsALongerRun) {
  RunConfig config = small_config();
  config.optimizer.schedule = Schedule::kConstant;
  start_until(config, "run");
  change("run", [](RunConfig& c) { c.train.steps = 17; });
  config.train.steps = 17;
  start_until(config, "long");
  EXPECT_EQ(hash_of("run"), hash_of("long"));
}

TEST_F(HistoryTest, InterruptionsAroundAChangeDoNotMatter) {
  start_until(small_config(), "run", 7);
  EXPECT_FALSE(change("run", faster, 9).finished);
  EXPECT_FALSE(change("run", faster, 15).finished);  // the same again is no change
  EXPECT_EQ(changes("run").size(), 1u);
  EXPECT_FALSE(change(
                   "run", [](RunConfig& c) { c.optimizer.clip = 0.1; }, 17)
                   .finished);
  EXPECT_TRUE(go_on("run").finished);
  ASSERT_EQ(changes("run").size(), 2u);
  EXPECT_EQ(changes("run")[1], "from step 16: optimizer.clip 1.0 -> 0.1");
  EXPECT_EQ(replayed("run"), hash_of("run"));
}

// A replay can be interrupted as well, before, at and after a change.
TEST_F(HistoryTest, ReplayCanBeInterrupted) {
  start_until(small_config(), "run");
  change("run", faster);
  for (const uint64_t stop : {3u, 9u, 10u, 11u, 16u}) {
    const std::string name = std::to_string(stop);
    start_until(read_config(root_ / "run"), name, stop);
    EXPECT_EQ(newest(name).state().step, stop);
    EXPECT_TRUE(go_on(name).finished);
    EXPECT_EQ(hash_of(name), hash_of("run")) << stop;
  }
}

TEST_F(HistoryTest, DamagedCheckpointsTakeTheRunThroughTheChangeAgain) {
  RunConfig config = small_config();
  config.checkpoint.keep = 100;
  start_until(config, "run");
  change("run", faster);
  const std::string expected = hash_of("run"), before = slurp("run/config.toml");
  for (const uint64_t step : {20, 16, 12, 10}) damage("run", step);
  struct Settings : Observer {
    void on_settings(const SettingsReport& report) override { seen.emplace_back(report.first_step, report.config); }
    std::vector<std::pair<uint64_t, RunConfig>> seen;
  } observer;
  std::atomic<bool> stop{false};
  EXPECT_TRUE(resume_run(read_config(root_ / "run"), root_ / "run", observer, stop).finished);
  ASSERT_EQ(observer.seen.size(), 2u);
  EXPECT_EQ(observer.seen[0].first, 9u);
  EXPECT_EQ(observer.seen[0].second.train.batch, 6u);
  EXPECT_EQ(observer.seen[1].first, 11u);
  EXPECT_EQ(observer.seen[1].second.train.batch, 4u);
  EXPECT_EQ(hash_of("run"), expected);
  EXPECT_EQ(slurp("run/config.toml"), before);
}

TEST_F(HistoryTest, EverySamplingContinuesWhereItWas) {
  std::ofstream(root_ / "text.txt") << data::stories_text(3, 30'000);
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kEpoch, Sampling::kStream}) {
    RunConfig config = small_config();
    config.data.sampling = sampling;
    config.data.paths = {(root_ / "text.txt").string()};
    const std::string name = "run" + std::to_string(static_cast<int>(sampling));
    start_until(config, name, 6);
    change(
        name, [](RunConfig& c) { c.train.batch = 5, c.train.accumulation = 2; }, 8);
    change(
        name, [](RunConfig& c) { c.train.batch = 3, c.train.accumulation = 1, c.train.steps = 30; }, 25);
    go_on(name);
    EXPECT_EQ(newest(name).state().data_position, 6 * 6 + 2 * 10 + 22 * 3u);
    EXPECT_EQ(replayed(name), hash_of(name));
  }
}

// Every block exactly once per epoch, whatever the sizes of the steps.
TEST_F(HistoryTest, EpochsVisitEachBlockOnceAfterAChangedBatch) {
  struct Counting : data::TokenStream {
    uint64_t size() const override { return 60 * 16 + 1; }
    void copy(uint64_t, size_t, int32_t*) const override {}
  } stream;
  std::vector<int> seen(60);
  uint64_t drawn = 0;
  uint32_t step = 0;
  for (const auto& [steps, sequences] : {std::pair{5u, 6u}, {3u, 10u}}) {  // 30 + 30 = 60 blocks
    const data::TrainingBatches batches({&stream, 0, stream.size()}, {.seed = 1,
                                                                      .context = 16,
                                                                      .sequences_per_step = sequences,
                                                                      .order = data::Order::kEpoch,
                                                                      .first_step = step,
                                                                      .first_sequence = drawn});
    for (const uint32_t end = step + steps; step < end; ++step) {
      for (uint32_t i = 0; i < sequences; ++i, ++drawn) ++seen[batches.position(step, i) / 16];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(60, 1));
}

// Precision and everything else that is not the model itself.
TEST_F(HistoryTest, OtherSettingsMayChange) {
  start_until(small_config(), "run", 5);
  const auto other = [](RunConfig& config) {
    config.train.precision = Precision::kBf16;
    config.train.steps = 18;
    config.optimizer = {.rate = 1e-3, .min_rate = 0, .warmup = 0, .schedule = Schedule::kLinear, .beta1 = 0.8};
    config.checkpoint = {.interval = 3, .keep = 1, .keep_best = false};
    config.log.interval = 2;
    config.train.validation_interval = 2;
    config.train.validation_batches = 3;
    config.diagnostics.health_interval = 2;
  };
  change("run", other, 8);
  EXPECT_EQ(newest("run").state().precision, "bf16");
  EXPECT_TRUE(go_on("run").finished);
  EXPECT_EQ(replayed("run"), hash_of("run"));
}

TEST_F(HistoryTest, RollbackReturnsToTheChange) {
  RunConfig config = corrupted(Policy::kStop);
  start_until(config, "run", 195);
  const auto roll_back = [](RunConfig& c) { c.diagnostics.policy = Policy::kRollback; };
  Listener listener;
  RunConfig wanted = config;
  roll_back(wanted);
  EXPECT_TRUE(resume(wanted, "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].resumed_after, 200u);
  EXPECT_EQ(replayed("run"), hash_of("run"));
  // With a checkpoint interval that has not come round yet, the checkpoint of the change is the last one. Its own was
  // displaced by one of an interruption, which an uninterrupted run does not have.
  config.checkpoint.interval = 190;
  start_until(config, "late", 195);
  EXPECT_EQ(checkpoint::list_steps(root_ / "late/checkpoints"), std::vector<uint64_t>{195});
  change(
      "late", [&](RunConfig& c) { roll_back(c), c.checkpoint.interval = 1000; }, 199);
  EXPECT_TRUE(go_on("late").finished);
  EXPECT_EQ(newest("late").state().skipped_steps, kSpike - 195);
  EXPECT_EQ(replayed("late"), hash_of("late"));
}

TEST_F(HistoryTest, RollbackBehindAChangeGoesThroughItAgain) {
  RunConfig config = corrupted(Policy::kRollback);
  config.checkpoint.keep = 10;
  start_until(config, "run", 197);
  change(
      "run", [](RunConfig& c) { c.train.batch = 2, c.train.accumulation = 2, c.optimizer.rate = 5e-3; }, 199);
  const std::string before = slurp("run/config.toml");
  for (const uint64_t step : {197}) damage("run", step);
  Listener listener;
  EXPECT_TRUE(resume(read_config(root_ / "run"), "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  // Step 200 is a regular one, so the rollback is not affected: as if nothing were damaged.
  EXPECT_EQ(listener.incidents[0].resumed_after, 200u);
  EXPECT_EQ(replayed("run"), hash_of("run"));
  EXPECT_EQ(slurp("run/config.toml"), before);
}

// All checkpoints since the change are damaged when the incident happens.
TEST_F(HistoryTest, RollbackToAnEarlierStageUsesItsSettings) {
  RunConfig config = corrupted(Policy::kRollback);
  config.checkpoint = {.interval = 190, .keep = 10, .keep_best = false};
  start_until(config, "run", 195);
  RunConfig wanted = config;
  wanted.optimizer.rate = 5e-3;
  wanted.train.batch = 2;
  wanted.train.accumulation = 2;
  struct Damaging : Listener {
    void on_step(const StepReport& report) override {
      Listener::on_step(report);
      if (report.step == 200 && incidents.empty()) act();
    }
    void on_settings(const SettingsReport& report) override { stages.push_back(report.first_step); }
    std::function<void()> act;
    std::vector<uint64_t> stages;
  } listener;
  listener.act = [&] { damage("run", 195); };
  EXPECT_TRUE(resume(wanted, "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].resumed_after, 190u);
  EXPECT_EQ(listener.stages, (std::vector<uint64_t>{196, 191, 196}));
  const RunState state = newest("run").state();
  EXPECT_EQ(state.step, 210u);
  EXPECT_EQ(state.skipped_steps, kSpike - 190);
  EXPECT_EQ(state.tokens, 210 * kSequences * kContext);
  EXPECT_EQ(state.data_position, (210 + state.skipped_steps) * kSequences);
}

TEST_F(HistoryTest, FinishedRunIsLeftAsItIs) {
  start_until(small_config(), "run");
  const std::string log = slurp("run/config.toml");
  struct Silent : Observer {
    void on_start(const RunStart&) override { FAIL(); }
    void on_checkpoint(uint64_t, const fs::path&) override { FAIL(); }
  } observer;
  std::atomic<bool> stop{false};
  const RunResult result = resume_run(read_config(root_ / "run"), root_ / "run", observer, stop);
  EXPECT_TRUE(result.finished);
  EXPECT_FALSE(result.resumed);
  EXPECT_EQ(result.step, 10u);
  EXPECT_EQ(result.loss, newest("run").state().loss);
  EXPECT_GT(*result.loss, 1);
  EXPECT_TRUE(result.validation_loss);
  EXPECT_EQ(slurp("run/config.toml"), log);
}

// The change is recorded for a step that the run does not have yet; it took the run round in circles.
TEST_F(HistoryTest, FinishedRunMayChangeBeforeItIsExtended) {
  start_until(small_config(), "run");
  const RunResult result = change("run", [](RunConfig& c) { c.optimizer.clip = 0.1; });
  EXPECT_TRUE(result.finished);
  EXPECT_FALSE(result.resumed);
  EXPECT_EQ(changes("run"), std::vector<std::string>{"from step 11: optimizer.clip 1.0 -> 0.1"});
  EXPECT_FALSE(go_on("run").resumed);
  EXPECT_EQ(replayed("run"), hash_of("run"));
  EXPECT_TRUE(change("run", [](RunConfig& c) { c.train.steps = 13; }).resumed);
  EXPECT_EQ(changes("run"), std::vector<std::string>{"from step 11: train.steps 10 -> 13, optimizer.clip 1.0 -> 0.1"});
}

// They were checked together with what [[history]] has of earlier steps: 5 steps and a warm-up of 6, and were refused.
TEST_F(HistoryTest, NewSettingsNeedNotFitThoseOfEarlierSteps) {
  std::ofstream(root_ / "text.txt") << data::stories_text(3, 30'000);
  const std::string text = (root_ / "text.txt").string();
  fs::copy_file(text, root_ / "moved.txt");
  RunConfig config = small_config();
  config.train.steps = 5;
  config.data.paths = {text};
  start_until(config, "run");
  change("run", [&](RunConfig& c) { c.train.steps = 10, c.data.paths = {(root_ / "moved.txt").string()}; });
  const auto wsd = [&](RunConfig& c) {
    c.train.steps = 20;
    c.optimizer.schedule = Schedule::kWsd;
    c.optimizer.warmup = 6;
    c.data.paths.clear();
    c.data.sources = {text + " 1"};
    resolve_paths(c);
  };
  EXPECT_TRUE(change("run", wsd).finished);
  EXPECT_EQ(changes("run").size(), 2u);
  EXPECT_EQ(replayed("run"), hash_of("run"));
}

TEST_F(HistoryTest, RefusesWhatCannotChange) {
  std::ofstream(root_ / "text.txt") << data::stories_text(3, 30'000);
  RunConfig config = small_config();
  config.data.paths = {(root_ / "text.txt").string()};
  start_until(config, "run", 6);
  const std::string before = slurp("run/config.toml");
  const auto message = [&](const Edit& edit) { return message_of([&] { change("run", edit); }); };
  EXPECT_TRUE(has(message([](RunConfig& c) { c.train.steps = 5; }),
                  "train.steps: expected at least 6, the steps that the run has done, found 5"));
  EXPECT_TRUE(has(message([](RunConfig& c) { c.model.layers = 2; }), "the weights belong to that model"));
  EXPECT_TRUE(has(message([](RunConfig& c) { c.train.seed = 2; }), "quern train --from"));
  EXPECT_TRUE(has(message([](RunConfig& c) { c.data.sampling = Sampling::kEpoch; }), "it decides the data"));
  EXPECT_TRUE(has(message([](RunConfig& c) { c.data.tokenizer = TokenizerKind::kBpe; }), "the run's tokens"));
  EXPECT_TRUE(has(message([](RunConfig& c) { c.history = {{1, {{"train.steps", "10"}}}}; }), "history: expected that"));
  EXPECT_TRUE(has(message([](RunConfig& c) { c.train.memory = 1, c.train.batch = 5; }), "train.memory"));
  std::ofstream(root_ / "other.txt") << data::stories_text(3, 29'000);
  const std::string other = message([&](RunConfig& c) { c.data.paths = {(root_ / "other.txt").string()}; });
  EXPECT_TRUE(has(other, "other.txt: expected the text of the run, in another place, found other text")) << other;
  EXPECT_TRUE(has(other, "quern train --from " + (root_ / "run").string())) << other;
  const std::string mixture = message([&](RunConfig& c) {
    c.data.paths.clear();
    c.data.sources = {(root_ / "other.txt").string() + " 1"};
  });
  EXPECT_TRUE(has(mixture, "--set 'data.sources=[\"" + (root_ / "other.txt 1").string() + "\"]' --run NEW")) << mixture;
  EXPECT_EQ(slurp("run/config.toml"), before);
  // The same text may have moved.
  fs::rename(root_ / "text.txt", root_ / "moved.txt");
  EXPECT_TRUE(has(message_of([&] { go_on("run"); }), "text.txt"));
  EXPECT_TRUE(change("run", [&](RunConfig& c) { c.data.paths = {(root_ / "moved.txt").string()}; }).finished);
  EXPECT_EQ(replayed("run"), hash_of("run"));
}

}  // namespace
}  // namespace quern::train
