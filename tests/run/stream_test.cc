// Runs on text that is tokenised while they train: data.sampling = stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "data/mixed_batches.h"
#include "data/stories.h"
#include "data/stream_sequences.h"
#include "dataset/dataset.h"
#include "run/run.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using ::quern::test::message_of;

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() : text_(data::stories_text(1, 300'000)) { write("a.txt", text_); }

  fs::path write(std::string_view name, std::string_view text) const {
    fs::path path = root_ / std::string(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  RunConfig config() const {
    RunConfig config;
    config.model = {.layers = 1, .heads = 2, .width = 16, .context = 32, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 12;
    config.train.batch = 24;
    config.train.threads = 2;
    config.train.validation_interval = 5;
    config.train.validation_batches = 1;
    config.optimizer.warmup = 2;
    config.data.paths = {(root_ / "a.txt").string()};
    config.data.sampling = Sampling::kStream;
    config.checkpoint.interval = 4;
    return config;
  }
  // A text of a few steps, so that a run goes around several times.
  RunConfig short_text() const {
    RunConfig result = config();
    result.data.paths = {write("b.txt", text_.substr(0, 4000)).string()};
    return result;
  }

  std::string hash_of(const fs::path& folder) {
    const auto found = checkpoint::find_newest_valid(folder / "checkpoints", [](const std::string&) {});
    return found ? checkpoint::weights_hash(found->model()) : "none";
  }
  std::string run(const RunConfig& config, const std::string& name) {
    Observer quiet;
    start_run(config, root_ / name, quiet, stop_);
    return hash_of(root_ / name);
  }

  RunResult resume(const std::string& name, Observer& observer, uint64_t threads = 2) {
    RunConfig config = read_config(root_ / name);
    config.train.threads = threads;
    return resume_run(config, root_ / name, observer, stop_);
  }

  ::quern::test::TemporaryFolder root_;
  std::string text_;
  std::atomic<bool> stop_{false};
};

// Promise I1.
TEST_F(StreamTest, ThreadsDoNotChangeTheWeights) {
  const ::quern::test::Watchdog watchdog("stream by threads");
  for (const auto& base : {config(), short_text()}) {
    std::vector<std::string> hashes;
    for (const uint64_t threads : {1, 2, 4, 8}) {
      RunConfig config = base;
      config.train.threads = threads;
      hashes.push_back(run(config, "threads-" + std::to_string(threads)));
      fs::remove_all(root_ / ("threads-" + std::to_string(threads)));
    }
    for (const std::string& hash : hashes) EXPECT_EQ(hash, hashes.front());
  }
}

TEST_F(StreamTest, ProducersDoNotChangeTheWeights) {
  const ::quern::test::Watchdog watchdog("stream by producers");
  const RunConfig config = this->config();
  const Dataset dataset = open_dataset(config, {});
  std::vector<test::Trained> results;
  for (const size_t producers : {1, 2, 5}) {
    std::vector<data::MixedBatches::Source> sources;
    sources.push_back({std::make_unique<data::StreamSequences>(
        *dataset.sources[0].text, *dataset.tokenizer, data::StreamOptions{.context = 32, .producers = producers})});
    const data::MixedBatches batches(1, std::move(sources));
    test::Engine engine(config, batches, dataset.vocabulary);
    engine.steps(20);
    results.push_back(engine.result());
  }
  for (const test::Trained& result : results) EXPECT_TRUE(result == results.front());
}

// The same tokens ahead of time, window after window, by a plain loop.
TEST_F(StreamTest, ReadsTheTokensInOrder) {
  for (const TokenizerKind kind : {TokenizerKind::kByte, TokenizerKind::kChar, TokenizerKind::kBpe}) {
    RunConfig config = this->config();
    config.data.tokenizer = kind;
    config.data.vocabulary = 400;
    const Dataset dataset = open_dataset(config, {});
    config.data.sampling = Sampling::kEpoch;
    const Dataset ahead = open_dataset(config, {});
    ASSERT_EQ(dataset.tokenizer->to_json(), ahead.tokenizer->to_json());
    config.data.sampling = Sampling::kStream;
    const auto source = training_batches(config, dataset);
    const auto reader = source->reader({});
    data::Batch batch;
    batch.sequences = 100;
    batch.columns = Columns(source->columns(), 100);
    const auto inputs = batch.columns.ints(kTokensColumn), targets = batch.columns.ints(kTargetsColumn);
    std::vector<int32_t> expected(100 * 32 + 1);
    for (uint64_t at = 0; at + expected.size() < ahead.sources[0].split.train.size() * 9 / 10; at += 3200) {
      reader->read(batch);
      ahead.stream->copy(at, expected.size(), expected.data());
      ASSERT_TRUE(std::equal(inputs.begin(), inputs.end(), expected.begin())) << at;
      ASSERT_TRUE(std::equal(targets.begin(), targets.end(), expected.begin() + 1)) << at;
    }
  }
}

// Sets the stop flag after a step, as Ctrl-C does.
struct StopAfter : Observer {
  StopAfter(std::atomic<bool>& flag, uint64_t step) : flag(flag), step(step) {}
  void on_step(const StepReport& report) override {
    if (report.step == step) flag = true;
  }
  std::atomic<bool>& flag;
  uint64_t step;
};

// Promise I4; also in the middle of the text, and after it has started again.
TEST_F(StreamTest, ResumedRunEqualsAnUninterruptedOne) {
  const ::quern::test::Watchdog watchdog("stream resumed");
  for (const auto& base : {config(), short_text()}) {
    const std::string expected = run(base, "whole");
    StopAfter first(stop_, 3);
    EXPECT_FALSE(start_run(base, root_ / "cut", first, stop_).finished);
    stop_ = false;
    StopAfter second(stop_, 7);
    EXPECT_EQ(resume("cut", second).step, 7u);
    stop_ = false;
    Observer quiet;
    EXPECT_TRUE(resume("cut", quiet, 3).finished);
    EXPECT_EQ(hash_of(root_ / "cut"), expected);
    fs::remove_all(root_ / "whole");
    fs::remove_all(root_ / "cut");
  }
}

TEST_F(StreamTest, TokenisesOnlyTheHeldOutTextItNeeds) {
  RunConfig config = this->config();
  config.data.tokenizer = TokenizerKind::kByte;
  const Dataset all = open_dataset(config, {}), some = open_dataset(config, {}, {.validation_tokens = 1000});
  EXPECT_EQ(all.sources[0].text->bytes() + all.validation_tokens(), text_.size());
  EXPECT_NEAR(static_cast<double>(all.validation_tokens()), 30'000, 100);
  EXPECT_EQ(some.validation_tokens(), 1000u);
  std::vector<int32_t> tokens(1000);
  some.stream->copy(0, 1000, tokens.data());
  for (size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_EQ(tokens[i], static_cast<unsigned char>(text_[all.sources[0].text->bytes() + i]));
  }
  EXPECT_NEAR(static_cast<double>(all.train_tokens), 270'000, 30'000);
}

TEST_F(StreamTest, StreamsStories) {
  RunConfig config = this->config();
  config.data.paths.clear();
  config.data.stories_bytes = 100'000;
  const Dataset dataset = open_dataset(config, {});
  ASSERT_TRUE(dataset.floor.has_value());
  EXPECT_NEAR(*dataset.floor, data::stories_entropy().nats_per_byte, 1e-9);
}

TEST_F(StreamTest, RefusesToResumeWithChangedText) {
  Observer quiet;
  RunConfig config = this->config();
  config.train.steps = 2;
  start_run(config, root_ / "run", quiet, stop_);
  const auto resumed = [&] {
    return message_of([&] {
      RunConfig longer = read_config(root_ / "run");
      longer.train.steps += 2;
      resume_run(longer, root_ / "run", quiet, stop_);
    });
  };
  EXPECT_EQ(resumed(), "no error");
  text_[123'456] = text_[123'456] == 'x' ? 'y' : 'x';
  write("a.txt", text_);
  EXPECT_NE(resumed().find("a.txt: changed since the run was started: expected 300"), std::string::npos) << resumed();
  EXPECT_NE(resumed().find("bytes with hash"), std::string::npos);
  write("a.txt", text_ + " more");
  EXPECT_NE(resumed().find("changed since"), std::string::npos);
}

TEST_F(StreamTest, RefusesToResumeWithOtherSampling) {
  Observer quiet;
  RunConfig config = this->config();
  config.train.steps = 2;
  start_run(config, root_ / "run", quiet, stop_);
  config.data.sampling = Sampling::kEpoch;
  config.train.steps = 3;
  std::ofstream(root_ / "run/config.toml") << to_toml(config);
  EXPECT_NE(message_of([&] { resume("run", quiet); }).find("data.sampling: expected a stream, as in its checkpoint"),
            std::string::npos);
}

TEST_F(StreamTest, ResumesAfterTextWasTruncatedDuringTheRun) {
  const ::quern::test::Watchdog watchdog("text cut short");
  RunConfig config = this->config();
  config.train.steps = 2000;
  config.checkpoint.interval = 50;
  struct CutShort : Observer {
    void on_step(const StepReport& report) override {
      if (report.step == 6) fs::resize_file(file, 100'000);
    }
    fs::path file;
  } observer;
  observer.file = root_ / "a.txt";
  const std::string message = message_of([&] { start_run(config, root_ / "run", observer, stop_); });
  EXPECT_NE(message.find("a.txt: changed while it was in use: expected 300"), std::string::npos) << message;
  write("a.txt", text_);
  struct StopAtOnce : Observer {
    explicit StopAtOnce(std::atomic<bool>& flag) : flag(flag) {}
    void on_step(const StepReport&) override { flag = true; }
    std::atomic<bool>& flag;
  } stop(stop_);
  EXPECT_GE(resume("run", stop).step, 51u);
}

TEST_F(StreamTest, BadTextIsAnError) {
  const auto opening = [&](const fs::path& path) {
    RunConfig config = this->config();
    config.data.paths = {path.string()};
    return message_of([&] { open_dataset(config, {}); });
  };
  EXPECT_NE(opening(root_ / "none.txt").find("none.txt: expected a file or folder"), std::string::npos);
  EXPECT_NE(opening(write("empty.txt", "")).find("found only empty files"), std::string::npos);
  EXPECT_NE(opening(write("empty.jsonl", "{\"text\": \"\"}\n")).find("empty.jsonl"), std::string::npos);
  EXPECT_NE(opening(write("short.txt", "too short")).find("training text: expected at least 33 tokens"),
            std::string::npos);
  EXPECT_NE(opening(write("tail.txt", text_.substr(0, 200))).find("held-out text: expected at least 33 tokens"),
            std::string::npos);
  EXPECT_NE(opening(write("bad.txt", text_ + "\xFF\xFE")).find("expected UTF-8, found byte 0xff"), std::string::npos);
  EXPECT_NE(opening(write("shard.bin", "0123")).find("found token shards; data.sampling = stream"), std::string::npos);
}

}  // namespace
}  // namespace quern::train
