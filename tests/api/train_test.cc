// Training, loading and generating through the public headers alone.
#include <gtest/gtest.h>
#include <quern/generate.h>
#include <quern/model.h>
#include <quern/train.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/message.h"
#include "support/temporary_folder.h"

namespace {

using quern::test::message_of;
using quern::test::TemporaryFolder;

quern::TrainOptions small_run(const std::filesystem::path& out) {
  return {
      .out = out,
      .settings = {"model.layers=1", "model.width=32", "model.heads=2", "model.context=32", "data.stories_bytes=20000",
                   "train.batch=4", "train.validation_interval=3", "train.validation_batches=1"},
      .steps = 6};
}

TEST(PublicTrain, CallsOnStepForEachStepAndReportsTheHashOfTheModel) {
  const TemporaryFolder folder;
  quern::TrainOptions options = small_run(folder / "run");
  std::vector<quern::Step> steps;
  options.on_step = [&](const quern::Step& step) {
    steps.push_back(step);
    return true;
  };
  const quern::TrainResult result = quern::train_model(options);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].step, 1u);
  EXPECT_EQ(steps[5].steps, 6u);
  EXPECT_EQ(steps[5].tokens, 4u * 32);
  EXPECT_GT(steps[5].tokens_per_s(), 0);
  EXPECT_FALSE(steps[0].validation_loss);
  EXPECT_TRUE(steps[2].validation_loss);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.loss, steps[5].loss);

  const quern::Model model = quern::Model::load(result.path);
  EXPECT_EQ(model.weights_hash(), result.weights_hash);
  EXPECT_EQ(model.step(), 6u);
  EXPECT_EQ(model.context(), 32u);
  EXPECT_NE(model.config().find("layers = 1"), std::string::npos);
}

TEST(PublicTrain, StoppedAndResumedHasTheSameWeightsWithAnyThreads) {
  const TemporaryFolder folder;
  const quern::TrainResult expected = quern::train_model(small_run(folder / "once"));

  quern::TrainOptions options = small_run(folder / "twice");
  options.on_step = [](const quern::Step& step) { return step.step < 2; };
  const quern::TrainResult stopped = quern::train_model(options);
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.step, 2u);

  options.on_step = {};
  options.resume = true;
  options.threads = 2;
  const quern::TrainResult resumed = quern::train_model(options);
  EXPECT_TRUE(resumed.finished);
  EXPECT_EQ(resumed.weights_hash, expected.weights_hash);
}

TEST(PublicTrain, ResumesWithOtherSettingsAndRepeatsTheHistory) {
  const TemporaryFolder folder;
  const quern::TrainResult first = quern::train_model(small_run(folder / "run"));
  const quern::TrainResult again = quern::train_model({.out = folder / "run", .resume = true});
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.loss, first.loss);
  const quern::TrainResult longer =
      quern::train_model({.out = folder / "run", .settings = {"optimizer.rate=1e-4"}, .steps = 9, .resume = true});
  EXPECT_EQ(longer.step, 9u);
  const quern::TrainResult replayed =
      quern::train_model({.out = folder / "replayed", .config = folder / "run" / "config.toml"});
  EXPECT_EQ(replayed.weights_hash, longer.weights_hash);
  EXPECT_EQ(replayed.loss, longer.loss);
}

TEST(PublicTrain, StartsFromAnotherRun) {
  const TemporaryFolder folder;
  const quern::TrainResult source = quern::train_model(small_run(folder / "source"));
  const std::filesystem::path best = (folder / "source").string() + "@best";
  const quern::TrainResult copy = quern::train_model({.out = folder / "copy", .steps = 0, .init_from = best});
  EXPECT_EQ(copy.weights_hash, source.weights_hash);
  EXPECT_TRUE(std::isnan(copy.loss));
  EXPECT_EQ(message_of([&] { quern::train_model({.out = folder / "copy", .resume = true, .init_from = best}); }),
            "[train] init_from starts a new run, resume continues one; give one of the two");
}

TEST(PublicTrain, ExceptionInOnStepIsRethrownAfterSaving) {
  const TemporaryFolder folder;
  quern::TrainOptions options = small_run(folder / "run");
  options.on_step = [](const quern::Step& step) -> bool {
    if (step.step == 3) throw std::logic_error("mine");
    return true;
  };
  EXPECT_THROW(quern::train_model(options), std::logic_error);
  EXPECT_EQ(quern::Model::load(options.out).step(), 3u);
}

TEST(PublicTrain, ExceptionInOnPreparingLeavesNothing) {
  const TemporaryFolder folder;
  quern::TrainOptions options = small_run(folder / "run");
  options.on_preparing = [](std::string_view, uint64_t, uint64_t) { throw std::logic_error("mine"); };
  EXPECT_THROW(quern::train_model(options), std::logic_error);
  EXPECT_FALSE(std::filesystem::exists(options.out / "config.toml"));
}

TEST(PublicTrain, BadOptionsAreErrorsThatNameTheSetting) {
  const TemporaryFolder folder;
  quern::TrainOptions options = small_run(folder / "run");
  options.settings = {"model.layerz=2"};
  EXPECT_NE(message_of([&] { quern::train_model(options); }).find("did you mean model.layers"), std::string::npos);
  options = small_run(folder / "run");
  options.threads = 1000;
  EXPECT_NE(message_of([&] { quern::train_model(options); }).find("threads: expected 1 to"), std::string::npos);
  options = small_run({});
  EXPECT_NE(message_of([&] { quern::train_model(options); }).find("out: expected a folder"), std::string::npos);
  EXPECT_THROW(quern::preset_config("huge"), quern::Error);
  EXPECT_NE(quern::preset_config("tiny").find("[model]"), std::string::npos);
}

class PublicModel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    quern::train_model(small_run(*folder / "run"));
  }
  static void TearDownTestSuite() { delete folder; }

  static TemporaryFolder* folder;
  quern::Model model = quern::Model::load(*folder / "run");
};
TemporaryFolder* PublicModel::folder = nullptr;

TEST_F(PublicModel, StreamedPiecesConcatenateToGeneratedText) {
  const quern::GenerationOptions options{.tokens = 40, .temperature = 0.9f, .top_k = 20, .seed = 3};
  const std::string text = quern::generate(model, "Once", options);
  quern::TextStream stream(model, "Once", options);
  std::string pieces;
  while (const std::optional<std::string> piece = stream.next()) pieces += *piece;
  EXPECT_EQ(pieces, text);
  EXPECT_FALSE(stream.next());
  EXPECT_FALSE(text.empty());
  quern::GenerationOptions two = options;
  two.threads = 2;
  EXPECT_EQ(quern::generate(model, "Once", two), text);
  quern::GenerationOptions other = options;
  other.sample = 1;
  EXPECT_NE(quern::generate(model, "Once", other), text);
  EXPECT_EQ(quern::generate(model, "", options), quern::generate(model, {}, options));  // of characters
}

TEST_F(PublicModel, TextEndsBeforeAStopString) {
  const std::string whole = quern::generate(model, "Once", {.tokens = 40, .min_p = 0.01f, .repeat_penalty = 1.1f});
  const std::string stop = whole.substr(10, 3);
  quern::TextStream stream(model, "Once",
                           {.tokens = 40, .min_p = 0.01f, .repeat_penalty = 1.1f, .stop = {"not in the text", stop}});
  EXPECT_EQ(stream.finish(), std::nullopt);
  std::string text;
  while (const std::optional<std::string> piece = stream.next()) text += *piece;
  EXPECT_EQ(text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(stream.finish(), "stop");
}

TEST_F(PublicModel, StreamKeepsItsModelAlive) {
  auto stream = [] {
    const quern::Model here = quern::Model::load(*folder / "run");
    return quern::TextStream(here, "Once", {.tokens = 5});
  }();
  EXPECT_TRUE(stream.next());
  const quern::Tokenizer tokenizer = quern::Model::load(*folder / "run").tokenizer();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Once")), "Once");
}

TEST_F(PublicModel, LossMatchesTheLogits) {
  const std::vector<int32_t> tokens = model.tokenizer().encode("Once upon a time there ");
  const size_t V = model.vocabulary();
  const std::vector<float> logits = model.logits(tokens, tokens.size());
  ASSERT_EQ(logits.size(), tokens.size() * V);
  double sum = 0;
  for (size_t t = 0; t + 1 < tokens.size(); ++t) {
    const float* row = logits.data() + t * V;
    double total = 0;
    for (size_t v = 0; v < V; ++v) total += std::exp(static_cast<double>(row[v]));
    sum += std::log(total) - static_cast<double>(row[static_cast<size_t>(tokens[t + 1])]);
  }
  EXPECT_NEAR(model.loss(tokens, tokens.size()), sum / static_cast<double>(tokens.size() - 1), 1e-4);
  EXPECT_THROW(model.loss(tokens, 5), quern::Error);
  EXPECT_THROW(model.logits(tokens, 0), quern::Error);
}

TEST_F(PublicModel, EvaluatesOnHeldOutText) {
  const quern::Evaluation result = model.evaluate();
  EXPECT_GT(result.tokens, 0u);
  EXPECT_NEAR(result.perplexity, std::exp(result.loss), 1e-6);
  EXPECT_TRUE(result.bits_per_byte);
}

TEST_F(PublicModel, BadInputIsAnError) {
  EXPECT_THROW(quern::Model::load(*folder / "no-such-run"), quern::Error);
  EXPECT_THROW(quern::generate(model, "Once", {.temperature = -1}), quern::Error);
  EXPECT_THROW(quern::generate(model, "Once", {.min_p = 2}), quern::Error);
  EXPECT_THROW(quern::generate(model, "Once", {.repeat_window = 3}), quern::Error);
  EXPECT_THROW(quern::generate(model, "Once", {.stop = {""}}), quern::Error);
  EXPECT_THROW(quern::generate(model, "\u4e00"), quern::Error);  // no character of the stories
  EXPECT_THROW(model.loss(std::vector<int32_t>{0, 1'000'000}, 2), quern::Error);
}

}  // namespace
