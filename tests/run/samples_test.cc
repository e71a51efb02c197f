// Texts that a run writes while it trains: the same ones whatever happens, and no effect on the run.
#include "run/samples.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "report/run_files.h"
#include "run/finetune_settings.h"
#include "run/observers.h"
#include "run/run.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

struct Listener : Observer {
  void on_sample(const SampleReport& report) override { samples[report.step] = report; }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_step(const StepReport& report) override { stop = stop || report.step == stop_after; }
  std::map<uint64_t, SampleReport> samples;
  std::vector<std::string> warnings;
  std::atomic<bool> stop{false};
  uint64_t stop_after = 0;
};

class SamplesTest : public ::testing::Test {
 protected:
  static RunConfig config() {
    RunConfig config;
    config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 12;
    config.train.batch = 8;
    config.train.threads = 2;
    config.train.validation_interval = 0;
    config.optimizer.warmup = 2;
    config.data.stories_bytes = 50000;
    config.checkpoint.interval = 4;
    config.log.sample_interval = 5;
    return config;
  }
  std::string hash_of(const std::string& name) {
    return checkpoint::weights_hash(
        checkpoint::find_newest_valid(root_ / name / "checkpoints", [](const std::string&) {})->model());
  }
  std::map<uint64_t, std::string> texts(const RunConfig& config, const std::string& name) {
    Listener listener;
    start_run(config, root_ / name, listener, listener.stop);
    EXPECT_TRUE(listener.warnings.empty() || config.data.format == DataFormat::kChat);
    std::map<uint64_t, std::string> texts;
    for (const auto& [step, sample] : listener.samples) texts[step] = sample.text;
    return texts;
  }

  test::TemporaryFolder root_;
};

TEST_F(SamplesTest, AreWrittenAtIntervalsAndAfterTheLastStep) {
  const auto written = texts(config(), "run");
  ASSERT_EQ(written.size(), 3u);
  for (const uint64_t step : {5, 10, 12}) EXPECT_FALSE(written.at(step).empty());
  EXPECT_NE(written.at(5), written.at(10));
}

TEST_F(SamplesTest, DependOnSeedAndStepAndNotOnThreads) {
  RunConfig wanted = config();
  wanted.log.sample_prompt = "Once upon";
  const auto expected = texts(wanted, "two");
  for (const uint64_t threads : {1, 3, 7}) {
    wanted.train.threads = threads;
    EXPECT_EQ(texts(wanted, std::to_string(threads)), expected);
  }
  wanted.train.seed = 2;
  EXPECT_NE(texts(wanted, "other"), expected);
}

TEST_F(SamplesTest, HaveNoEffectOnTheWeights) {
  RunConfig wanted = config();
  texts(wanted, "with");
  wanted.log.sample_interval = 0;
  EXPECT_TRUE(texts(wanted, "without").empty());
  EXPECT_EQ(hash_of("with"), hash_of("without"));
}

TEST_F(SamplesTest, WorkInEveryPrecision) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    RunConfig wanted = config();
    wanted.train.precision = precision;
    EXPECT_EQ(texts(wanted, std::string(precision_name(precision))).size(), 3u);
  }
}

// Stopped after step 7 and resumed from there: metrics.jsonl has each sample once, and the same as without a stop.
TEST_F(SamplesTest, AResumedRunWritesNoneTwice) {
  const auto logged = [&](const std::string& name) {
    std::vector<std::string> lines;
    std::ifstream file(root_ / name / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      if (line.find("\"sample\"") != std::string::npos) lines.push_back(line);
    }
    return lines;
  };
  const auto go = [&](const std::string& name, uint64_t stop_after, bool resume) {
    report::RunFiles files(root_ / name, config());
    Listener listener;
    listener.stop_after = stop_after;
    Observers all{&files, &listener};
    if (resume) {
      resume_run(config(), root_ / name, all, listener.stop);
    } else {
      start_run(config(), root_ / name, all, listener.stop);
    }
  };
  go("whole", 0, false);
  go("parts", 7, false);
  fs::remove_all(root_ / "parts/checkpoints/step-00000007");  // as if it had been killed: back to step 4
  go("parts", 0, true);
  EXPECT_EQ(logged("whole").size(), 3u);
  EXPECT_EQ(logged("parts"), logged("whole"));
}

TEST_F(SamplesTest, APromptThatCannotBeEncodedIsAnErrorBeforeTheFirstStep) {
  RunConfig wanted = config();
  wanted.log.sample_prompt = "日本";
  Listener listener;
  const std::string message = test::message_of([&] { start_run(wanted, root_ / "run", listener, listener.stop); });
  EXPECT_NE(message.find("log.sample_prompt"), std::string::npos) << message;
}

TEST_F(SamplesTest, AnswerTheFirstQuestionOfConversations) {
  {
    std::ofstream file(root_ / "chats.jsonl");
    for (int i = 0; i < 30; ++i)
      file << R"({"prompt": "tell me", "completion": " a story"})"
           << "\n";
    std::ofstream(root_ / "text.txt") << std::string(200, 'x') + "abcdefghijklmnopqrstuvwxyz .\n" +
                                             std::string(5000, 'e');
  }
  RunConfig base = config();
  base.data.paths = {(root_ / "text.txt").string()};
  base.data.tokenizer = TokenizerKind::kByte;
  texts(base, "base");
  RunConfig wanted = finetune_config(root_ / "base");
  wanted.data.paths = {(root_ / "chats.jsonl").string()};
  wanted.lora = {.rank = 3, .alpha = 6, .dropout = 0.1};
  wanted.train.batch = 4;
  wanted.data.epochs = 6;
  wanted.log.sample_interval = 5;
  Listener listener;
  start_run(wanted, root_ / "chat", listener, listener.stop);
  ASSERT_FALSE(listener.samples.empty());
  EXPECT_EQ(listener.samples.begin()->second.prompt, "tell me");
  wanted.log.sample_prompt = "who";
  Listener other;
  start_run(wanted, root_ / "asked", other, other.stop);
  EXPECT_EQ(other.samples.begin()->second.prompt, "who");
}

}  // namespace
}  // namespace quern::train
