// Runs that start from the weights of another run.
#include "run/source_run.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "data/stories.h"
#include "data/token_shard_writer.h"
#include "diagnose/incidents.h"
#include "run/run.h"

namespace quern::train {
namespace {

class SourceTest : public IncidentTest {
 protected:
  SourceTest() {
    std::string letters;  // all that the other text has
    for (char c = ' '; c < 127; ++c) letters += c;
    write("a.txt", letters + data::stories_text(1, 20'000));
    write("b.txt", data::stories_text(2, 20'000));
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  RunConfig source_config() const {
    RunConfig config;
    config.model = {.layers = 1, .heads = 2, .width = 16, .context = 16, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 8;
    config.train.batch = 4;
    config.train.threads = 2;
    config.train.validation_interval = 4;
    config.train.validation_batches = 1;
    config.data.paths = {(root_ / "a.txt").string()};
    config.checkpoint = {.interval = 4, .keep = 9, .keep_best = true};
    return config;
  }
  // Starts "source" and returns the config of a run from it on other text.
  RunConfig other_text(const std::string& from = "source") {
    if (!fs::exists(root_ / "source")) start_quietly(source_config(), "source");
    RunConfig config = config_from(root_ / from);
    config.data.paths = {(root_ / "b.txt").string()};
    return config;
  }
  RunResult start_quietly(const RunConfig& config, const std::string& name, uint64_t stop_after = 0) {
    Listener listener;
    listener.stop_after = stop_after;
    return start(config, name, listener);
  }
  RunResult resume_quietly(const std::string& name) {
    Listener listener;
    return resume(read_config(root_ / name), name, listener);
  }
  std::string message(const RunConfig& config) {
    std::string text = message_of([&] { start_quietly(config, "refused"); });
    EXPECT_FALSE(fs::exists(root_ / "refused"));
    return text;
  }
};

TEST_F(SourceTest, StartsWithTheWeightsAndTheTokenizerOfItsSource) {
  RunConfig config = other_text();
  config.train.steps = 0;
  config.train.seed = 7;
  start_quietly(config, "copy");
  EXPECT_EQ(hash_of("copy"), hash_of("source"));
  const checkpoint::Checkpoint copy = newest("copy");
  EXPECT_EQ(copy.state().step, 0u);
  EXPECT_EQ(copy.state().updates, 0u);
  EXPECT_EQ(read_file(root_ / "copy/tokenizer.json", 1 << 20), read_file(root_ / "source/tokenizer.json", 1 << 20));
  const RunConfig::Init init = read_config(root_ / "copy").init;
  EXPECT_EQ(init.from, (root_ / "source/checkpoints/step-00000008").string());
  EXPECT_EQ(init.weights_hash, hash_of("source"));
}

// A table of positions keeps its rows; the sequences of the new run may be shorter than the table. Without a table,
// only the memory of the machine limits them.
TEST_F(SourceTest, CanTrainWithAnotherContext) {
  RunConfig config = other_text();
  config.train.steps = 2;
  config.model.context = 8;
  EXPECT_NE(message(config).find("model.context: expected 16"), std::string::npos);
  config.model.max_context = 16;
  start_quietly(config, "shorter");
  EXPECT_EQ(newest("shorter").model().find("wpe.weight")->shape, (std::vector<size_t>{16, 16}));
  RunConfig llama = config_from(root_ / "source");
  llama.init = {};
  llama.model.family = nn::Family::kLlama;
  start_quietly(llama, "llama");
  config = config_from(root_ / "llama");
  config.train.steps = 2;
  config.model.context = 24;
  start_quietly(config, "longer");
  EXPECT_EQ(newest("longer").state().tokens, 2 * config.sequences_per_step() * 24);
}

TEST_F(SourceTest, ChoosesACheckpoint) {
  other_text();
  for (const auto& [from, step] : {std::pair<std::string, std::string>{"source", "8"},
                                   {"source/", "8"},
                                   {"source@4", "4"},
                                   {"source@best", "8"},
                                   {"source/checkpoints/step-00000004", "4"}}) {
    RunConfig config = config_from(root_ / from);
    resolve_source(config, [](const std::string& text) { FAIL() << text; });
    EXPECT_TRUE(config.init.from.ends_with("step-0000000" + step)) << from << " " << config.init.from;
  }
}

// The source is gone, and the run is killed before its first checkpoint: it continues from the one of step 0.
TEST_F(SourceTest, DoesNotNeedItsSourceAgain) {
  const RunConfig config = other_text();
  start_quietly(config, "whole");
  start_quietly(config, "cut", 2);
  fs::remove_all(root_ / "cut/checkpoints/step-00000002");  // as if it had been killed
  fs::rename(root_ / "source", root_ / "gone");
  EXPECT_TRUE(resume_quietly("cut").finished);
  EXPECT_EQ(hash_of("cut"), hash_of("whole"));
}

TEST_F(SourceTest, ConfigOfARunDeterminesItsWeights) {
  start_quietly(other_text(), "run");
  start_quietly(read_config(root_ / "run"), "again");
  EXPECT_EQ(hash_of("again"), hash_of("run"));
  EXPECT_NE(hash_of("run"), hash_of("source"));
  RunConfig other = read_config(root_ / "run");
  other.init.weights_hash[0] = other.init.weights_hash[0] == '0' ? '1' : '0';
  EXPECT_TRUE(has(message(other), "expected the weights " + other.init.weights_hash));
}

// A rollback without a checkpoint since the start returns to the weights of the source, not to random ones.
TEST_F(SourceTest, RollbackReturnsToTheBeginning) {
  RunConfig config = corrupted(Policy::kStop);
  config.train.steps = 150;
  start_quietly(config, "source");
  RunConfig other = config_from(root_ / "source");
  other.train.steps = 210;
  other.checkpoint.interval = 0;
  other.diagnostics.policy = Policy::kRollback;
  Listener listener;
  EXPECT_TRUE(start(other, "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].resumed_after, 0u);
  EXPECT_LT(listener.steps[kSpike].loss, 1);  // the first step after it
}

// A start that was killed after it saved the weights but before there was a run is started again.
TEST_F(SourceTest, StartsOverAfterAKilledStart) {
  const RunConfig config = other_text();
  start_quietly(config, "whole");
  start_quietly(config, "run", 1);
  fs::remove_all(root_ / "run/checkpoints/step-00000001");
  fs::remove(root_ / "run/config.toml");
  std::ofstream(root_ / "run/run.lock") << "quern run lock: pid 1 on here since then\n";
  EXPECT_TRUE(start_quietly(config, "run").finished);
  EXPECT_EQ(hash_of("run"), hash_of("whole"));
  // Not with the files of someone else among them.
  fs::remove(root_ / "run/config.toml");
  std::ofstream(root_ / "run/run.lock") << "quern run lock: pid 1 on here since then\n";
  EXPECT_TRUE(has(message_of([&] { start_quietly(config, "run"); }), "found checkpoints without a config.toml"));
}

TEST_F(SourceTest, RefusesWhatDoesNotFit) {
  RunConfig config = other_text();
  config.model.width = 32;
  EXPECT_TRUE(has(message(config), "model.width: expected 16, as in " + (root_ / "source").string()));
  config = other_text();
  config.data.tokenizer = TokenizerKind::kByte;
  EXPECT_TRUE(has(message(config), "data.tokenizer: expected \"char\""));
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kStream}) {
    config = other_text();
    config.data.sampling = sampling;
    write("c.txt", data::stories_text(2, 200'000) + "\u00e9" + data::stories_text(3, 20'000));
    config.data.paths = {(root_ / "c.txt").string()};
    const std::string text = message(config);
    EXPECT_TRUE(has(text, "c.txt") && has(text, "characters of the vocabulary, found") && has(text, "U+00E9")) << text;
  }
  for (const char* from : {"source@5", "source@worst"}) {
    EXPECT_TRUE(has(message_of([&] { other_text(from); }),
                    "expected newest, best, the path of one, or one of the saved steps 4, 8"))
        << from;
  }
  for (const char* from :
       {"nothing", "nothing@best", "source@", "source/checkpoints", "source/checkpoints/step-00000005", "a.txt"}) {
    EXPECT_TRUE(has(message_of([&] { config_from(root_ / from); }), "expected a run to start from, RUN@best")) << from;
  }
  fs::remove_all(root_ / "source/checkpoints");
  EXPECT_TRUE(has(message(other_text()), "expected a checkpoint, found none; train it first"));
}

TEST_F(SourceTest, RunsOnShardsNeedShards) {
  std::vector<int32_t> tokens(5000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 47);
  data::TokenShardWriter writer(root_ / "shard.bin");
  writer.append(tokens);
  writer.finish();
  RunConfig config = source_config();
  config.data.paths = {(root_ / "shard.bin").string()};
  config.model.vocabulary = 50;
  start_quietly(config, "source");
  EXPECT_TRUE(start_quietly(config_from(root_ / "source"), "run").finished);
  EXPECT_TRUE(has(message(other_text()), "has no tokenizer.json, because it was trained on token shards"));
}

TEST_F(SourceTest, StartsFromTheNewestSettingsOfAChangedRun) {
  start_quietly(source_config(), "source");
  RunConfig longer = read_config(root_ / "source");
  longer.train.steps = 10;
  longer.optimizer.clip = 0.5;
  Listener listener;
  resume(longer, "source", listener);
  const RunConfig config = config_from(root_ / "source");
  EXPECT_TRUE(config.history.empty());
  EXPECT_EQ(config.optimizer.clip, 0.5);
}

}  // namespace
}  // namespace quern::train
