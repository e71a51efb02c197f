#include "run/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "data/batch_source.h"
#include "data/token_shard_writer.h"
#include "support/message.h"
#include "support/modern.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"
#include "train/plan.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

class RunTest : public ::testing::Test {
 protected:
  static RunConfig small_config() {
    RunConfig config;
    config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 12;
    config.train.batch = 8;
    config.train.validation_interval = 5;
    config.train.validation_batches = 1;
    config.optimizer.warmup = 2;
    config.data.stories_bytes = 50000;
    config.checkpoint.interval = 4;
    return config;
  }

  std::string hash_of(const fs::path& folder) {
    const auto found = checkpoint::find_newest_valid(folder / "checkpoints", [](const std::string&) {});
    return found ? checkpoint::weights_hash(found->model()) : "none";
  }

  test::TemporaryFolder root_;
  std::atomic<bool> stop_{false};
};

// Sets the stop flag after a step, as Ctrl-C does.
struct StopAfter : Observer {
  StopAfter(std::atomic<bool>& flag, uint64_t step) : flag(flag), step(step) {}
  void on_step(const StepReport& report) override {
    losses.push_back(report.loss);
    if (report.step == step) flag = true;
  }
  std::atomic<bool>& flag;
  uint64_t step;
  std::vector<double> losses;
};

TEST_F(RunTest, LossDecreases) {
  RunConfig config = small_config();
  config.train.steps = 60;
  StopAfter observer(stop_, 0);
  const RunResult result = start_run(config, root_ / "run", observer, stop_);
  EXPECT_TRUE(result.finished);
  EXPECT_GT(observer.losses.front(), 3.0);
  EXPECT_LT(observer.losses.back(), observer.losses.front() - 0.5);
  ASSERT_TRUE(result.validation_loss.has_value());
  EXPECT_LT(*result.validation_loss, observer.losses.front() - 0.5);
}

TEST_F(RunTest, ValidatesOnAllHeldOutTextWithoutALimit) {
  RunConfig config = small_config();
  config.train.steps = 1;
  Observer quiet;
  std::vector<std::optional<double>> losses;
  for (const uint64_t batches : {uint64_t{0}, uint64_t{1}, uint64_t{1'000'000}}) {
    config.train.validation_batches = batches;
    losses.push_back(start_run(config, root_ / std::to_string(batches), quiet, stop_).validation_loss);
    ASSERT_TRUE(losses.back().has_value());
  }
  EXPECT_EQ(losses[0], losses[2]);
  EXPECT_NE(losses[0], losses[1]);
}

TEST_F(RunTest, ReportsMemoryAtLoggedSteps) {
  struct Watch : Observer {
    void on_start(const RunStart& start) override { planned = start.plan->memory.total(); }
    void on_step(const StepReport& report) override {
      if (report.memory) samples[report.step] = *report.memory;
    }
    uint64_t planned = 0;
    std::map<uint64_t, MemoryUse> samples;
  } watch;
  RunConfig config = small_config();
  config.log.interval = 5;
  start_run(config, root_ / "run", watch, stop_);
  ASSERT_EQ(watch.samples.size(), 3u);  // 5, 10 and 12
  for (const auto& [step, memory] : watch.samples) {
    EXPECT_TRUE(step % 5 == 0 || step == 12) << step;
    EXPECT_EQ(memory.planned, watch.planned);
    EXPECT_GE(memory.weights, memory.moments / 2);
    EXPECT_GE(memory.gradient, memory.moments / 2);
    EXPECT_GT(memory.arena, 0u);
    EXPECT_GE(memory.peak, memory.resident);
    EXPECT_GT(memory.resident, memory.weights);
    EXPECT_LE(memory.allocated() - memory.pool, memory.planned);
  }
  EXPECT_GT(watch.samples[12].pool, 0u);  // what the validation of an earlier step rented
}

// Promise I3.
TEST_F(RunTest, AccumulationDoesNotChangeTheWeights) {
  Observer observer;
  std::vector<std::string> hashes;
  for (const auto& [batch, accumulation] : {std::pair{16, 1}, {4, 4}, {2, 8}, {1, 16}}) {
    RunConfig config = small_config();
    config.train.batch = static_cast<uint64_t>(batch);
    config.train.accumulation = static_cast<uint64_t>(accumulation);
    config.train.steps = 5;
    const fs::path folder = root_ / std::to_string(batch);
    start_run(config, folder, observer, stop_);
    hashes.push_back(hash_of(folder));
  }
  for (const std::string& hash : hashes) EXPECT_EQ(hash, hashes.front());
}

// Promise I4, for interruptions that save. Steps 3 and 6 are not multiples of the checkpoint interval.
TEST_F(RunTest, ResumedRunEqualsAnUninterruptedOne) {
  Observer quiet;
  start_run(small_config(), root_ / "whole", quiet, stop_);
  StopAfter first(stop_, 3);
  EXPECT_FALSE(start_run(small_config(), root_ / "cut", first, stop_).finished);
  stop_ = false;
  StopAfter second(stop_, 6);
  EXPECT_EQ(resume_run(read_config(root_ / "cut"), root_ / "cut", second, stop_).step, 6u);
  stop_ = false;
  EXPECT_TRUE(resume_run(read_config(root_ / "cut"), root_ / "cut", quiet, stop_).finished);
  EXPECT_EQ(hash_of(root_ / "cut"), hash_of(root_ / "whole"));
}

// Promises I1 to I4 for every family: threads, recomputation, accumulation and interruptions together.
TEST_F(RunTest, RunsOfEveryFamilyAreReproducible) {
  for (const ::quern::test::ModelKind& model : ::quern::test::model_kinds()) {
    SCOPED_TRACE(model.name);
    const std::filesystem::path whole = root_ / (model.name + "-whole"), cut = root_ / (model.name + "-cut");
    RunConfig config = small_config();
    config.model = model.apply(config.model);
    config.train.batch = 16;
    Observer quiet;
    stop_ = false;
    start_run(config, whole, quiet, stop_);
    config.train.batch = 4;
    config.train.accumulation = 4;
    config.train.recompute = *parse_recompute("every-layer");
    config.train.threads = 3;
    StopAfter first(stop_, 3);
    EXPECT_FALSE(start_run(config, cut, first, stop_).finished);
    stop_ = false;
    EXPECT_TRUE(resume_run(read_config(cut), cut, quiet, stop_).finished);
    EXPECT_EQ(hash_of(cut), hash_of(whole));
  }
}

// The same for Muon.
TEST_F(RunTest, RunsOfAModernModelWithMuonAreReproducible) {
  RunConfig config = small_config();
  config.model = ::quern::test::modern(config.model);
  config.optimizer.kind = OptimizerRule::kMuon;
  config.optimizer.momentum_warmup = 5;
  config.train.batch = 16;
  Observer quiet;
  start_run(config, root_ / "whole", quiet, stop_);
  config.train.batch = 4;
  config.train.accumulation = 4;
  config.train.recompute = *parse_recompute("every-layer");
  config.train.threads = 3;
  StopAfter first(stop_, 3);
  EXPECT_FALSE(start_run(config, root_ / "cut", first, stop_).finished);
  stop_ = false;
  RunConfig resumed = read_config(root_ / "cut");
  resumed.train.threads = 1;
  EXPECT_TRUE(resume_run(resumed, root_ / "cut", quiet, stop_).finished);
  EXPECT_EQ(hash_of(root_ / "cut"), hash_of(root_ / "whole"));
  resumed.optimizer.kind = OptimizerRule::kAdamW;
  resumed.train.steps = 20;
  const std::string message = ::quern::test::message_of([&] { resume_run(resumed, root_ / "cut", quiet, stop_); });
  EXPECT_NE(message.find("optimizer.kind: expected \"muon\""), std::string::npos) << message;
  EXPECT_NE(message.find("quern train --from"), std::string::npos) << message;
}

TEST_F(RunTest, ResumedRunEqualsAnUninterruptedOneIn16Bits) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    RunConfig config = small_config();
    config.train.precision = precision;
    const std::string name(precision_name(precision));
    const fs::path whole = root_ / name, cut = root_ / ("cut-" + name);
    Observer quiet;
    start_run(config, whole, quiet, stop_);
    StopAfter first(stop_, 3);
    EXPECT_FALSE(start_run(config, cut, first, stop_).finished);
    stop_ = false;
    RunConfig lean = read_config(cut);
    lean.train.recompute = *parse_recompute("every-layer");
    EXPECT_TRUE(resume_run(lean, cut, quiet, stop_).finished);
    EXPECT_EQ(hash_of(cut), hash_of(whole));
    const auto newest = checkpoint::find_newest_valid(cut / "checkpoints", [](const std::string&) {});
    EXPECT_EQ(newest->state().loss_scale, 1);
    EXPECT_EQ(newest->state().updates, 12u);
    RunConfig other = read_config(cut);
    other.train.precision = Precision::kFp32;
    other.train.steps = 13;  // not finished
    write_config(other, cut);
    EXPECT_NE(::quern::test::message_of([&] {
                resume_run(other, cut, quiet, stop_);
              }).find("train.precision: expected " + name),
              std::string::npos);
  }
}

// fp16 runs of older versions multiplied the loss by a scale that doubled every 1,000 steps, and lost updates once it
// had made the gradient overflow. Their checkpoints still have it: that of 100,000 steps, too.
TEST_F(RunTest, IgnoresTheLossScaleOfOlderCheckpoints) {
  RunConfig config = small_config();
  config.train.precision = Precision::kFp16;
  Observer quiet;
  start_run(config, root_ / "whole", quiet, stop_);
  StopAfter first(stop_, 3);
  EXPECT_FALSE(start_run(config, root_ / "cut", first, stop_).finished);
  stop_ = false;
  const fs::path saved = root_ / "cut" / "checkpoints" / "step-00000003";
  checkpoint::StateFile state = checkpoint::read_state(saved);
  state.state.loss_scale = std::ldexp(65536.0, 100);
  write_file(saved / "state.json", checkpoint::to_json(state));
  EXPECT_TRUE(resume_run(read_config(root_ / "cut"), root_ / "cut", quiet, stop_).finished);
  EXPECT_EQ(hash_of(root_ / "cut"), hash_of(root_ / "whole"));
  const auto newest = checkpoint::find_newest_valid(root_ / "cut" / "checkpoints", [](const std::string&) {});
  EXPECT_EQ(newest->state().loss_scale, 1);
  EXPECT_EQ(newest->state().updates, 12u);
}

// A killed run leaves its last checkpoint; what came after is computed again.
TEST_F(RunTest, ResumesFromAnEarlierCheckpointIfTheNewestIsDamaged) {
  Observer quiet;
  start_run(small_config(), root_ / "whole", quiet, stop_);
  start_run(small_config(), root_ / "cut", quiet, stop_);
  fs::resize_file(root_ / "cut/checkpoints/step-00000012/model.safetensors", 1000);
  struct Warned : Observer {
    void on_warning(const std::string& text) override { warnings.push_back(text); }
    std::vector<std::string> warnings;
  } observer;
  EXPECT_TRUE(resume_run(read_config(root_ / "cut"), root_ / "cut", observer, stop_).finished);
  ASSERT_EQ(observer.warnings.size(), 1u);
  EXPECT_NE(observer.warnings[0].find("step-00000012"), std::string::npos) << observer.warnings[0];
  EXPECT_EQ(hash_of(root_ / "cut"), hash_of(root_ / "whole"));
}

// metrics.jsonl could not be written, and all steps since the last checkpoint were lost.
TEST_F(RunTest, SavesBeforeEndingIfAnObserverFails) {
  struct Failing : Observer {
    void on_step(const StepReport& report) override {
      if (report.step == 6) throw Error("[metrics] cannot be written");
    }
  } failing;
  Observer quiet;
  start_run(small_config(), root_ / "whole", quiet, stop_);
  EXPECT_EQ(test::message_of([&] { start_run(small_config(), root_ / "cut", failing, stop_); }),
            "[metrics] cannot be written");
  const auto found = checkpoint::find_newest_valid(root_ / "cut/checkpoints", nullptr);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->state().step, 6u);
  EXPECT_TRUE(resume_run(read_config(root_ / "cut"), root_ / "cut", quiet, stop_).finished);
  EXPECT_EQ(hash_of(root_ / "cut"), hash_of(root_ / "whole"));
}

TEST_F(RunTest, SavesBeforeEndingIfOnHealthFails) {
  struct Failing : Observer {
    void on_health(const HealthReport& report) override {
      if (report.step == 6) throw Error("[metrics] cannot be written");
    }
  } failing;
  Observer quiet;
  RunConfig config = small_config();
  config.diagnostics.health_interval = 2;
  start_run(config, root_ / "whole", quiet, stop_);
  EXPECT_EQ(test::message_of([&] { start_run(config, root_ / "cut", failing, stop_); }), "[metrics] cannot be written");
  const auto found = checkpoint::find_newest_valid(root_ / "cut/checkpoints", nullptr);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->state().step, 6u);
  EXPECT_TRUE(resume_run(read_config(root_ / "cut"), root_ / "cut", quiet, stop_).finished);
  EXPECT_EQ(hash_of(root_ / "cut"), hash_of(root_ / "whole"));
}

TEST_F(RunTest, DoesNotOverwriteARun) {
  Observer quiet;
  RunConfig config = small_config();
  config.train.steps = 1;
  start_run(config, root_ / "run", quiet, stop_);
  EXPECT_THROW(start_run(config, root_ / "run", quiet, stop_), Error);
  EXPECT_THROW(resume_run(read_config(root_ / "nothing"), root_ / "nothing", quiet, stop_), Error);
}

TEST_F(RunTest, LeavesNoFilesIfTheDataIsUnusable) {
  Observer quiet;
  RunConfig config = small_config();
  config.data.paths = {(root_ / "missing.txt").string()};
  EXPECT_THROW(start_run(config, root_ / "run", quiet, stop_), Error);
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

// Token shards, of which a token becomes one that no vocabulary has, after they were opened and found good.
class DamagedData : public RunTest {
 protected:
  static constexpr uint32_t kVocabulary = 50, kContext = 32;

  static RunConfig shard_config(const fs::path& shard) {
    RunConfig config = small_config();
    config.model.vocabulary = kVocabulary;
    config.train.batch = 24;  // 3 micro-batches
    config.train.threads = 5;
    config.data.paths = {shard.string()};
    return config;
  }
  void write(const fs::path& path) {
    std::vector<int32_t> tokens(20'000);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 47 % kVocabulary);
    data::TokenShardWriter writer(path);
    writer.append(tokens);
    writer.finish();
  }
  // A position that the steps before `step` do not read and this one does.
  static uint64_t first_read_by(uint32_t step) {
    struct Size : data::TokenStream {
      uint64_t size() const override { return 18'000; }
      void copy(uint64_t, size_t, int32_t*) const override {}
    } stream;
    const data::TrainingBatches batches({&stream, 0, stream.size()},
                                        {.seed = 1, .context = kContext, .sequences_per_step = 24});
    std::vector<uint32_t> first(stream.size(), UINT32_MAX);
    for (uint32_t s = step + 1; s-- > 0;) {
      for (uint32_t i = 0; i < 24; ++i) {
        const auto at = static_cast<std::ptrdiff_t>(batches.position(s, i));
        std::fill_n(first.begin() + at, kContext + 1, s);
      }
    }
    return static_cast<uint64_t>(std::find(first.begin(), first.end(), step) - first.begin());
  }
  struct Damage : Observer {
    Damage(fs::path shard, uint64_t position) : shard(std::move(shard)), position(position) {}
    void on_start(const RunStart&) override {
      const uint16_t bad = 60'000;
      std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(data::kShardHeaderBytes + 2 * position));
      file.write(reinterpret_cast<const char*>(&bad), sizeof(bad));
      ASSERT_TRUE(file.flush().good());
    }
    fs::path shard;
    uint64_t position;
  };
  // Fails, is repaired and goes on; the hash at the end.
  std::string hash_after_failure(const std::string& name, uint64_t bad, uint64_t expected_step) {
    Observer quiet;
    const fs::path shard = root_ / (name + ".bin");
    write(shard);
    Damage damage(shard, bad);
    EXPECT_THROW(start_run(shard_config(shard), root_ / name, damage, stop_), Error);
    EXPECT_THROW(resume_run(read_config(root_ / name), root_ / name, quiet, stop_), Error);
    const auto found = checkpoint::find_newest_valid(root_ / name / "checkpoints", [](const std::string&) {});
    EXPECT_EQ(found ? found->state().step : 0, expected_step);
    write(shard);
    EXPECT_TRUE(resume_run(read_config(root_ / name), root_ / name, quiet, stop_).finished);
    return hash_of(root_ / name);
  }
};

TEST_F(DamagedData, ResumedRunEqualsAnUninterruptedOneAfterReadErrors) {
  const test::Watchdog watchdog("damaged data");
  Observer quiet;
  write(root_ / "good.bin");
  start_run(shard_config(root_ / "good.bin"), root_ / "whole", quiet, stop_);
  const std::string expected = hash_of(root_ / "whole");
  EXPECT_EQ(hash_after_failure("at_once", first_read_by(0), 0), expected);
  EXPECT_EQ(hash_after_failure("before_the_first_checkpoint", first_read_by(3), 0), expected);
  EXPECT_EQ(hash_after_failure("later", first_read_by(10), 8), expected);
  // By the workers themselves: validation begins at 18,000, is first due with the checkpoint of step 4 and comes first.
  EXPECT_EQ(hash_after_failure("validation", 18'010, 0), expected);
}

}  // namespace
}  // namespace quern::train
