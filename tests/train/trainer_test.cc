// Promise I1: any number of threads, one result.
#include "train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ostream>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "dataset/dataset.h"
#include "evaluate/evaluate.h"
#include "run/run.h"
#include "support/modern.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

using test::Engine;
using test::kSanitized;
using test::RandomTokens;
using test::Trained;

const std::vector<uint64_t> kThreads =
    kSanitized ? std::vector<uint64_t>{1, 3, 8} : std::vector<uint64_t>{1, 2, 3, 4, 8, 16, 32, 64};

struct Case {
  const char* name;
  RunConfig::Model model;
  uint32_t vocabulary;
  uint64_t batch, accumulation;
  size_t micro_batches;
  bool packed;

  RunConfig config() const {
    RunConfig config;
    config.model = model;
    config.train.steps = 100;
    config.train.batch = batch;
    config.train.accumulation = accumulation;
    config.optimizer.warmup = 2;
    return config;
  }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }  // NOLINT(readability-identifier-naming): gtest

constexpr uint32_t kSteps = 3;

class TrainerThreads : public ::testing::TestWithParam<Case> {};

TEST_P(TrainerThreads, EqualASequentialLoop) {
  const Case& c = GetParam();
  const ::quern::test::Watchdog watchdog(c.name);
  RunConfig config = c.config();
  const RandomTokens tokens(3000, c.vocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  config.train.threads = 1;
  EXPECT_EQ(make_plan(config, c.vocabulary).packed, c.packed);
  const Trained expected = test::train_sequentially(config, batches, c.vocabulary, kSteps);
  EXPECT_NE(expected.losses.front(), expected.losses.back());
  for (const uint64_t threads : kThreads) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    config.train.threads = threads;
    Engine engine(config, batches, c.vocabulary);
    EXPECT_EQ(engine.trainer.context().plan.threads, threads);
    EXPECT_LE(engine.trainer.context().plan.cut.teams, threads);
    EXPECT_GE(engine.trainer.context().plan.cut.teams, std::min<size_t>(threads, c.micro_batches));
    engine.steps(kSteps);
    EXPECT_TRUE(engine.result() == expected);
  }
}

// Teams of every kind at any number of threads, beyond those that are chosen by themselves.
TEST_P(TrainerThreads, InTeamsEqualASequentialLoop) {
  const Case& c = GetParam();
  const ::quern::test::Watchdog watchdog(c.name);
  RunConfig config = c.config();
  const RandomTokens tokens(3000, c.vocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  const Trained expected = test::train_sequentially(config, batches, c.vocabulary, 2);
  for (const auto& [threads, teams] : {std::pair{2, 1}, {3, 2}, {7, 3}, {8, 8}}) {
    SCOPED_TRACE(std::to_string(threads) + " threads in " + std::to_string(teams) + " teams");
    config.train.threads = static_cast<uint64_t>(threads);
    Engine engine(config, batches, c.vocabulary, {.teams = static_cast<size_t>(teams)});
    engine.steps(2);
    EXPECT_TRUE(engine.result() == expected);
  }
}

// The last two have matrices of several segments, and so many of the token table that joining them is a task of its
// own. The more workers, the smaller the pieces in which those are passed on.
INSTANTIATE_TEST_SUITE_P(
    Shapes, TrainerThreads,
    ::testing::Values(Case{"many micro-batches", {2, 2, 32, 16, 0, 0.1}, 50, 80, 2, 10, true},
                      Case{"without dropout", {1, 4, 64, 64, 0, 0.0}, 65, 24, 1, 6, true},
                      Case{"a batch that does not divide", {1, 3, 24, 16, 0, 0.2}, 41, 37, 1, 3, false},
                      Case{"one long sequence", {2, 2, 32, 300, 0, 0.1}, 33, 1, 1, 1, false},
                      Case{"two sequences", {1, 2, 48, 256, 0, 0.1}, 70, 1, 2, 2, false},
                      Case{"five sequences", {1, 5, 40, 257, 0, 0.1}, 30, 5, 1, 5, true},
                      Case{"less than a micro-batch", {1, 1, 8, 5, 0, 0.5}, 3, 2, 1, 1, false},
                      Case{"many segments", {1, 5, 160, 32, 0, 0.1}, 1300, 18, 1, 3, false},
                      Case{"many segments and workers", {1, 5, 160, 32, 0, 0.1}, 1300, 36, 2, 9, true}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
      return name;
    });

// Lanes belong to the run: the result depends on their number, not on threads, teams or micro-batches. A table that is
// used twice has its two sums joined in every lane.
class TrainerLanes : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Outputs, TrainerLanes, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Tied" : "Untied"; });

TEST_P(TrainerLanes, EqualASequentialLoop) {
  const ::quern::test::Watchdog watchdog("lanes");
  RunConfig config;
  config.model = {.layers = 2, .heads = 5, .width = 160, .context = 32, .vocabulary = 0, .dropout = 0.1};
  config.model.tied_output = GetParam();
  config.train.steps = 100;
  config.train.batch = 19;
  config.optimizer.warmup = 2;
  constexpr uint32_t kVocabulary = 1300;  // joining the table is a task of its own
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  std::vector<std::vector<float>> results;
  for (const uint64_t lanes : kSanitized ? std::vector<uint64_t>{5} : std::vector<uint64_t>{1, 2, 5, 8, 19}) {
    config.train.lanes = lanes;
    const Trained expected = test::train_sequentially(config, batches, kVocabulary, kSteps);
    results.push_back(expected.weights);
    for (const auto& [threads, teams] : {std::pair{1, 0}, {2, 0}, {16, 0}, {2, 1}, {7, 3}}) {
      SCOPED_TRACE(fmt::format("{} lanes, {} threads, {} teams", lanes, threads, teams));
      config.train.threads = static_cast<uint64_t>(threads);
      Engine engine(config, batches, kVocabulary, {.teams = static_cast<size_t>(teams)});
      engine.steps(kSteps);
      EXPECT_TRUE(engine.result() == expected);
    }
  }
  for (size_t i = 1; i < results.size(); ++i) EXPECT_NE(results[i], results[i - 1]);
}

// Muon updates whole matrices, so threads share them in another way than the segments of AdamW. A model without
// parameters in its norms has fewer tickets to wait for.
class TrainerOf : public ::testing::TestWithParam<::quern::test::ModelKind> {};
INSTANTIATE_TEST_SUITE_P(Models, TrainerOf, ::testing::ValuesIn(::quern::test::model_kinds()),
                         [](const auto& test) { return test.param.name; });

TEST_P(TrainerOf, MuonEqualsASequentialLoop) {
  const ::quern::test::Watchdog watchdog("muon");
  RunConfig config;
  config.model = {.layers = 2, .heads = 4, .width = 160, .context = 32, .vocabulary = 0, .dropout = 0.1};
  config.model = GetParam().apply(config.model);
  config.train.steps = 100;
  config.train.batch = 18;
  config.optimizer.kind = OptimizerRule::kMuon;
  config.optimizer.schedule = Schedule::kWsd;
  config.optimizer.warmup = 2;
  const RandomTokens tokens(3000, 70);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  const Trained expected = test::train_sequentially(config, batches, 70, kSteps);
  ASSERT_EQ(expected.states.size(), 3u);
  for (const uint64_t threads : kSanitized ? std::vector<uint64_t>{2, 7} : std::vector<uint64_t>{1, 2, 7, 64}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    config.train.threads = threads;
    for (const size_t teams : {size_t{0}, size_t{1}}) {
      Engine engine(config, batches, 70, {.teams = teams});
      engine.steps(kSteps);
      EXPECT_TRUE(engine.result() == expected);
    }
  }
}

TEST(Trainer, LargeTokenTableIsJoinedByTasks) {
  RunConfig config;
  config.model = {1, 5, 160, 32, 0, 0.1};
  config.train.batch = 16;
  config.train.threads = 2;
  const RandomTokens tokens(3000, 1300);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  std::atomic<int> tasks[4] = {};
  Engine engine(config, batches, 1300,
                {.before_task = [&](const Task& task, const Member&) { ++tasks[static_cast<int>(task.kind)]; }});
  engine.steps(1);
  EXPECT_EQ(tasks[static_cast<int>(TaskKind::kTrain)], 2);
  EXPECT_EQ(tasks[static_cast<int>(TaskKind::kJoin)], 2);
  EXPECT_EQ(tasks[static_cast<int>(TaskKind::kUpdate)], 2);
}

TEST(Trainer, EvaluationDoesNotDependOnThreads) {
  const ::quern::test::Watchdog watchdog("evaluate");
  const RandomTokens tokens(3000, 60);
  for (const uint32_t context : {16u, 256u}) {
    nn::Transformer model({.layers = 2, .heads = 2, .width = 32, .context = context, .vocabulary = 60, .dropout = 0.3f},
                          true);
    model.initialise(3);
    for (const uint64_t max : {uint64_t{1}, uint64_t{5}, UINT64_MAX}) {
      const data::ValidationBatches windows({&tokens, 0, tokens.size()}, context, max);
      const Evaluation expected = evaluate(model, windows, 1, nullptr);
      EXPECT_NEAR(expected.loss, 4.1, 0.2);
      EXPECT_EQ(expected.tokens, windows.windows() * context);
      for (const uint64_t threads : kThreads) EXPECT_EQ(evaluate(model, windows, threads, nullptr).loss, expected.loss);
    }
  }
}

// An update that is skipped, in the middle of updates that are not.
TEST(Trainer, NonFiniteGradientLeavesWeightsUnchanged) {
  const ::quern::test::Watchdog watchdog("not finite");
  RunConfig config;
  config.model = {1, 2, 16, 16, 0, 0.1};
  config.train.batch = 80;
  config.train.threads = 3;
  const RandomTokens tokens(500, 20);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, 20);
  engine.steps(2);
  const std::vector<float> good = test::copy_of(engine.model.weights().values());
  engine.model.weights().values()[0] = std::numeric_limits<float>::infinity();
  engine.model.weights().repack();
  const std::vector<float> bad = test::copy_of(engine.model.weights().values());
  EXPECT_FALSE(engine.trainer.step().finite);
  EXPECT_EQ(test::copy_of(engine.model.weights().values()), bad);
  std::copy(good.begin(), good.end(), engine.model.weights().values().begin());
  engine.model.weights().repack();
  EXPECT_TRUE(engine.trainer.step().finite);
  EXPECT_NE(test::copy_of(engine.model.weights().values()), good);
}

class RunThreads : public ::testing::Test {
 protected:
  static RunConfig tiny() {
    RunConfig config = preset("tiny");
    config.model.dropout = 0.1;
    config.train.steps = kSanitized ? 2 : 30;
    config.train.validation_batches = 1;
    config.data.stories_bytes = 200'000;
    return config;
  }

  std::string hash_of_run(const RunConfig& config) {
    Observer quiet;
    const std::atomic<bool> stop{false};
    const auto folder = root_ / std::to_string(config.train.threads);
    EXPECT_TRUE(start_run(config, folder, quiet, stop).finished);
    const auto found = checkpoint::find_newest_valid(folder / "checkpoints", [](const std::string&) {});
    return found ? checkpoint::weights_hash(found->model()) : "none";
  }

  ::quern::test::TemporaryFolder root_;
};

TEST_F(RunThreads, HashOfTinyEqualsASequentialLoop) {
  const ::quern::test::Watchdog watchdog("tiny on stories", std::chrono::seconds(500));
  RunConfig config = tiny();
  const Dataset dataset = open_dataset(config, {});
  const data::TrainingBatches batches(dataset.sources[0].split.train,
                                      {.seed = config.train.seed, .context = 128, .sequences_per_step = 16});
  Trained sequential =
      test::train_sequentially(config, batches, dataset.vocabulary, static_cast<uint32_t>(config.train.steps));
  const nn::Declaration model = nn::declare(model_config(config, dataset.vocabulary));
  const std::string expected = checkpoint::weights_hash(checkpoint::tensor_refs(model.parameters, sequential.weights));
  for (const uint64_t threads : kThreads) {
    config.train.threads = threads;
    EXPECT_EQ(hash_of_run(config), expected) << threads << " threads";
  }
}

}  // namespace
}  // namespace quern::train
