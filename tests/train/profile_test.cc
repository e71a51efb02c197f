// Where the workers' time goes: all of it is named, and looking changes nothing.
#include "quern/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "core/thread_profile.h"
#include "support/watchdog.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

using test::Engine;
using test::RandomTokens;

constexpr uint32_t kVocabulary = 61;

RunConfig small_config(uint64_t threads) {
  RunConfig config;
  config.model = {.layers = 3, .heads = 2, .width = 64, .context = 64, .dropout = 0.1};
  config.train.threads = threads;
  config.train.batch = 16;  // 4 micro-batches
  config.train.steps = 1000;
  return config;
}

std::map<std::string, ProfileRow> by_name(const std::vector<ProfileRow>& rows) {
  std::map<std::string, ProfileRow> map;
  for (const ProfileRow& row : rows) map.emplace(row.name, row);
  return map;
}

// The steps' seconds are taken by the thread that trains; the rows by the workers.
double share_of_time_that_is_named(const RunConfig& config, TrainerOptions options) {
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Profile profile({.threads = config.train.threads});
  double seconds = 0;
  {
    Engine engine(config, batches, kVocabulary, std::move(options));
    engine.steps(2);
    engine.trainer.set_profile(&profile);
    for (int i = 0; i < 40; ++i) seconds += engine.trainer.step().seconds;
  }
  double sum = 0;
  for (const ProfileRow& row : profile.rows()) sum += row.total;
  return sum / (seconds * static_cast<double>(config.train.threads));
}

TEST(TrainerProfile, RowsAddUpToTheWorkersTime) {
  // 160 steps, of a second each under the thread sanitizer.
  const ::quern::test::Watchdog watchdog("profile", std::chrono::seconds(600));
  for (const uint64_t threads : {1, 2, 3}) {
    EXPECT_NEAR(share_of_time_that_is_named(small_config(threads), {}), 1, 0.03) << threads << " threads";
  }
  EXPECT_NEAR(share_of_time_that_is_named(small_config(2), {.teams = 1}), 1, 0.03) << "in a team";
}

TEST(TrainerProfile, CountsEveryOperation) {
  const ::quern::test::Watchdog watchdog("profile");
  RunConfig config = small_config(2);
  config.train.recompute = {.kind = Recompute::Kind::kEveryLayer};
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Profile profile({.threads = 2});
  {
    Engine engine(config, batches, kVocabulary);
    engine.trainer.set_profile(&profile);
    engine.steps(5);
    engine.trainer.set_profile(nullptr);
    engine.steps(1);
  }
  const uint64_t micro_batches = 5 * 4;
  const auto rows = by_name(profile.rows());
  for (const char* name :
       {"norm1 forward", "qkv forward", "attention forward", "project forward", "norm2 forward",
        "expand, activation forward", "contract forward", "qkv input gradient", "qkv weight gradient",
        "attention backward", "project input gradient", "project weight gradient", "expand input gradient",
        "expand weight gradient", "activation backward", "contract input gradient", "contract weight gradient",
        "norm1 backward", "norm2 backward"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    EXPECT_EQ(rows.at(name).count, 3 * micro_batches) << name;
  }
  for (const char* name : {"embedding forward", "embedding backward", "final norm forward", "final norm backward",
                           "output forward", "output input gradient", "output weight gradient", "cross entropy"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    EXPECT_EQ(rows.at(name).count, micro_batches) << name;
  }
  EXPECT_EQ(rows.at("qkv forward again").count, 2 * micro_batches);  // all layers but the topmost
  EXPECT_EQ(rows.at("dropout").count, micro_batches * (2 + 3 * 4 + 2 * 2 - 2));
  for (const char* name : {"AdamW", "packing weights", "join", "waiting for work", "other"}) {
    EXPECT_TRUE(rows.contains(name)) << name;
  }
  const double tokens_seen = 5.0 * 16 * 64;
  EXPECT_DOUBLE_EQ(rows.at("qkv forward").work, tokens_seen * 3 * 2 * 64 * 192);
  EXPECT_DOUBLE_EQ(rows.at("attention forward").work, tokens_seen * 3 * 2 * 64 * 64);
  EXPECT_DOUBLE_EQ(rows.at("output weight gradient").work, tokens_seen * 2 * 64 * kVocabulary);
}

// A team shares an operation; its work is counted once.
TEST(TrainerProfile, TeamWorkEqualsThatOfOneThread) {
  const ::quern::test::Watchdog watchdog("profile");
  const auto profiled = [](uint64_t threads) {
    const RunConfig config = small_config(threads);
    const RandomTokens tokens(3000, kVocabulary);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    Profile profile({.threads = threads});
    {
      Engine engine(config, batches, kVocabulary, {.teams = 1});
      engine.trainer.set_profile(&profile);
      engine.steps(2);
    }
    return by_name(profile.rows());
  };
  const auto one = profiled(1), three = profiled(3);
  for (const auto& [name, row] : one) {
    if (row.unit == Unit::kNone || name == "packing operands") continue;
    EXPECT_NEAR(three.at(name).work, row.work, 1e-9 * row.work) << name;
  }
  EXPECT_TRUE(three.contains("waiting for the team"));
}

TEST(TrainerProfile, DoesNotChangeTheResult) {
  const ::quern::test::Watchdog watchdog("profile");
  const RunConfig config = small_config(2);
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Profile profile({.threads = 3, .events = 1000});
  Engine plain(config, batches, kVocabulary), watched(config, batches, kVocabulary);
  watched.trainer.set_profile(&profile);
  const ProfiledThread here(profile, 2);
  plain.steps(3);
  watched.steps(3);
  EXPECT_EQ(plain.result(), watched.result());
}

TEST(TrainerProfile, IncludesHooksButNotEvaluations) {
  const ::quern::test::Watchdog watchdog("profile");
  static const Region kMine("my own region");
  const RunConfig config = small_config(2);
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Profile profile({.threads = 2, .events = 5000});
  {
    Engine engine(config, batches, kVocabulary, {.before_task = [](const Task& task, const Member&) {
                    if (task.kind == TaskKind::kTrain || task.kind == TaskKind::kLoss) const Timed timed(kMine, 0, 7);
                  }});
    engine.trainer.set_profile(&profile);
    engine.steps(2);
    const data::ValidationBatches windows({&tokens, 0, tokens.size()}, 64, 16);
    engine.trainer.evaluate(windows);
    engine.steps(1);
  }
  EXPECT_EQ(by_name(profile.rows()).at("my own region").count, 3u * 4u);
  std::map<uint32_t, int> by_step;
  for (size_t thread = 0; thread < 2; ++thread) {
    for (const ProfileEvent& event : profile.thread(thread).events()) {
      EXPECT_LE(event.begin, event.end);
      if (event.region == kMine.id()) {
        EXPECT_EQ(event.layer, 7);
      }
      if (std::string("qkv forward") == region_name(event.region)) {
        EXPECT_LT(event.micro_batch, 4u);
        EXPECT_LT(event.layer, 3);
        ++by_step[event.step];
      }
    }
  }
  EXPECT_EQ(by_step, (std::map<uint32_t, int>{{1, 12}, {2, 12}, {3, 12}}));
}

}  // namespace
}  // namespace quern::train
