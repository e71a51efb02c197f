#include "config/history.h"

#include <gtest/gtest.h>

#include <string>

#include "config/config_fields.h"
#include "core/error.h"
#include "support/message.h"
#include "support/mutation.h"

namespace quern::train {
namespace {

using test::message_of;

RunConfig parsed(std::string_view text) {
  RunConfig config;
  apply_toml(config, text, "run.toml");
  return config;
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected " << part << " in " << text;
}

// 500 steps, extended to 1000 with another rate, and from step 601 on with another batch.
RunConfig changed_twice() {
  RunConfig run;
  run.train.steps = 500;
  RunConfig wanted = run;
  wanted.train.steps = 1000;
  wanted.optimizer.rate = 1e-3;
  run = with_change(run, wanted, 501);
  wanted = run;
  wanted.train.batch = 4;
  return with_change(run, wanted, 601);
}

TEST(History, SettingsInForceFollowFromTheStep) {
  const RunConfig run = changed_twice();
  for (const auto& [step, steps, rate, batch] : {std::tuple{0u, 500u, 2e-3, 16u},
                                                 {1u, 500u, 2e-3, 16u},
                                                 {500u, 500u, 2e-3, 16u},
                                                 {501u, 1000u, 1e-3, 16u},
                                                 {600u, 1000u, 1e-3, 16u},
                                                 {601u, 1000u, 1e-3, 4u},
                                                 {9999u, 1000u, 1e-3, 4u}}) {
    const RunConfig config = config_at(run, step);
    EXPECT_EQ(config.train.steps, steps) << step;
    EXPECT_EQ(config.optimizer.rate, rate) << step;
    EXPECT_EQ(config.train.batch, batch) << step;
    EXPECT_TRUE(config.history.empty());
  }
  EXPECT_EQ(next_change(run, 0), 501u);
  EXPECT_EQ(next_change(run, 500), 501u);
  EXPECT_EQ(next_change(run, 501), 601u);
  EXPECT_EQ(next_change(run, 601), std::nullopt);
  EXPECT_EQ(sequences_until(run, 0), 0u);
  EXPECT_EQ(sequences_until(run, 600), 600 * 16u);
  EXPECT_EQ(sequences_until(run, 700), 600 * 16u + 100 * 4u);
}

TEST(History, TextRoundTripsAndIsReadable) {
  const RunConfig run = changed_twice();
  const std::string text = to_toml(run);
  EXPECT_EQ(parsed(text), run);
  expect_has(text, "[[history]]\nfrom_step = 1\ntrain.steps = 500\ntrain.batch = 16\noptimizer.rate = 0.002\n");
  expect_has(text, "[[history]]\nfrom_step = 501\ntrain.steps = 1000\noptimizer.rate = 0.001\n");
  expect_has(text, "[[history]]\nfrom_step = 601\ntrain.batch = 4\n");
  const std::vector<RecordedChange> changes = recorded_changes(run);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(to_text(changes[0]), "from step 501: train.steps 500 -> 1000, optimizer.rate 0.002 -> 0.001");
  EXPECT_EQ(to_text(changes[1]), "from step 601: train.batch 16 -> 4");
  EXPECT_NO_THROW(validate(run));
  EXPECT_NO_THROW(check_newest(run));
}

TEST(History, EveryRecordedSettingSurvivesARoundTrip) {
  RunConfig run, wanted;
  apply_toml(wanted, R"([model]
dropout = 0.25
[train]
precision = "bf16"
validation_batches = 3
[optimizer]
schedule = "linear"
[data]
paths = ["/a b/\"c\".txt", "/d\\e"]
[log]
tensorboard = true
[diagnostics]
policy = "rollback"
spike_z = 1e3
)",
             "wanted");
  const RunConfig changed = with_change(run, wanted, 7);
  const RunConfig again = parsed(to_toml(changed));
  EXPECT_EQ(again, changed);
  EXPECT_EQ(config_at(again, 6).data.paths, run.data.paths);
  EXPECT_EQ(config_at(again, 7).data.paths, wanted.data.paths);
  EXPECT_EQ(config_at(again, 7).model, wanted.model);
  EXPECT_EQ(config_at(again, 7).diagnostics, wanted.diagnostics);
  for (const RecordedChange& change : recorded_changes(again)) EXPECT_EQ(to_text(change).find('\n'), std::string::npos);
}

TEST(History, SettingsThatDoNotAffectTheResultAreNotRecorded) {
  RunConfig run, wanted;
  wanted.train.threads = 3;
  wanted.train.memory = 1 << 30;
  wanted.train.pin = true;
  EXPECT_FALSE(has_changes(run, wanted));
  wanted.train.steps = 2000;
  EXPECT_TRUE(has_changes(run, wanted));
  const RunConfig changed = with_change(run, wanted, 11);
  EXPECT_EQ(changed.train.threads, 0u);
  EXPECT_EQ(changed.train.memory, 0u);
  EXPECT_EQ(changed.train.steps, 2000u);
}

// A run that is killed before its first step with new settings is resumed with others, or with the old ones.
TEST(History, ChangesAtTheSameStepAreOne) {
  RunConfig run = changed_twice(), wanted = run;
  wanted.train.batch = 8;
  const RunConfig again = with_change(run, wanted, 601);
  EXPECT_EQ(again.history.size(), 3u);
  EXPECT_EQ(config_at(again, 601).train.batch, 8u);
  wanted.train.batch = 16;
  const RunConfig back = with_change(run, wanted, 601);
  EXPECT_EQ(back.history.size(), 2u);
  EXPECT_EQ(recorded_changes(back).size(), 1u);
  // Before the first step there is no history to record.
  EXPECT_TRUE(with_change(run, wanted, 1).history.empty());
  EXPECT_EQ(with_change(run, wanted, 1).train.steps, 1000u);
}

// A damaged checkpoint takes a run behind its last change; a new one then has everything in force at once.
TEST(History, AChangeIncludesThoseRecordedForLaterSteps) {
  const RunConfig run = changed_twice();
  RunConfig wanted = run;
  wanted.optimizer.clip = 0.5;
  const RunConfig changed = with_change(run, wanted, 551);
  const std::vector<RecordedChange> changes = recorded_changes(changed);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(to_text(changes[1]), "from step 551: train.batch 16 -> 4, optimizer.clip 1.0 -> 0.5");
}

TEST(History, ReportsWhatIsWrong) {
  const auto message = [](const std::string& history, const std::string& settings = "") {
    return message_of([&] {
      const RunConfig config = parsed(settings + history);
      validate(config);
      check_newest(config);
    });
  };
  const std::string first = "[[history]]\nfrom_step = 1\ntrain.steps = 5\n";
  const std::string now = "[train]\nsteps = 9\n";
  EXPECT_EQ(message(first + "[[history]]\nfrom_step = 6\ntrain.steps = 9\n", now), "no error");
  expect_has(message("history = 3\n"), "run.toml:1:11: history: expected tables [[history]], found 3");
  expect_has(message("history = [3]\n"), "expected tables [[history]], found a list");
  expect_has(message("[[history]]\ntrain.steps = 5\n"), "expected from_step with a whole number from 1 to");
  expect_has(message("[[history]]\nfrom_step = 0\n"), "from_step with a whole number from 1 to 4294967295, found 0");
  expect_has(message("[[history]]\nfrom_step = 'x'\n"), "found 'x'");
  expect_has(message("[[history]]\nfrom_step = 1\ntrain.stepz = 3\n"), "did you mean train.steps?");
  expect_has(message("[[history]]\nfrom_step = 1\nsteps = 3\n"), "did you mean train.steps?");
  expect_has(message("[[history]]\nfrom_step = 1\ntrain.steps = -3\n"), "run.toml:3:15: train.steps: expected a whole");
  expect_has(message("[[history]]\nfrom_step = 1\nmodel.width = 64\n"), "settings that may change during a run, found");
  expect_has(message("[[history]]\nfrom_step = 2\ntrain.steps = 5\n"), "expected from_step = 1 in its first entry");
  expect_has(message(first + "[[history]]\nfrom_step = 6\ntrain.batch = 9\n"), "the original value of train.batch");
  expect_has(message(first + "[[history]]\nfrom_step = 8\ntrain.steps = 9\n", now), "train.steps of at least 7");
  expect_has(message(first + first, now), "expected increasing from_step, found 1 after 1");
  expect_has(message(first + "[[history]]\nfrom_step = 6\ntrain.steps = 9\n", "[train]\nsteps = 10\n"),
             "train.steps: expected 9, its last value in [[history]], found another");
  expect_has(message("[[history]]\nfrom_step = 1\noptimizer.rate = 1e-5\n"), "optimizer.min_rate: expected at most");
}

TEST(History, SurvivesDamagedFiles) {
  test::Mutator mutator({to_toml(changed_twice())}, {"[[history]]", "from_step", "= 1", "train", "."}, 7);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = mutator.next();
    try {
      const RunConfig config = parsed(text);
      validate(config);
      check_newest(config);
      config_at(config, 550);
    } catch (const Error&) {  // or a good file
    }
  }
}

TEST(MinRate, YieldsToALowerRateUnlessGiven) {
  const auto min_rate = [](std::initializer_list<const char*> settings) {
    RunConfig config;
    for (const char* setting : settings) apply_setting(config, setting);
    lower_min_rate(config);
    validate(config);
    return config.optimizer.min_rate;
  };
  EXPECT_EQ(min_rate({}), 2e-4);
  EXPECT_EQ(min_rate({"optimizer.rate=1e-4"}), 1e-5);
  EXPECT_EQ(min_rate({"optimizer.rate=3e-4"}), 2e-4);  // as before
  EXPECT_EQ(min_rate({"optimizer.rate=1e-5", "optimizer.rate=1e-2"}), 2e-4);
  EXPECT_EQ(min_rate({"optimizer.rate=1e-4", "optimizer.schedule=constant"}), 2e-4);
  EXPECT_EQ(min_rate({"optimizer.min_rate=1e-6", "optimizer.rate=1e-4"}), 1e-6);
  expect_has(message_of([&] {
               min_rate({"optimizer.rate=1e-4", "optimizer.min_rate=2e-4"});
             }),
             "optimizer.min_rate: expected at most optimizer.rate, which is 0.0001, found 0.0002; add --set "
             "optimizer.min_rate=1e-05");
}

}  // namespace
}  // namespace quern::train
