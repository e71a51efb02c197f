// Fine-tuning through the public headers alone.
#include <gtest/gtest.h>
#include <quern/finetune.h>
#include <quern/model.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/message.h"
#include "support/temporary_folder.h"

namespace {

using quern::test::message_of;
using quern::test::TemporaryFolder;

class PublicFinetune : public ::testing::Test {
 protected:
  PublicFinetune() {
    quern::train_model(
        {.out = folder_ / "base",
         .settings = {"model.layers=1", "model.width=32", "model.heads=2", "model.context=96",
                      "data.stories_bytes=20000", "data.tokenizer=byte", "train.batch=4", "train.validation_batches=1"},
         .steps = 2});
    std::ofstream file(folder_ / "chats.jsonl");
    for (int i = 0; i < 12; ++i) {
      file << R"({"messages": [{"role": "user", "content": "Is it )" << i
           << R"(?"}, {"role": "assistant", "content": "It is."}]})"
           << "\n";
    }
  }

  quern::FinetuneOptions options(const char* name) const {
    return {.base = folder_ / "base",
            .data = {folder_ / "chats.jsonl"},
            .out = folder_ / name,
            .chat_template = "chatml",
            .context = 96};
  }

  TemporaryFolder folder_;
};

TEST_F(PublicFinetune, TrainsAdaptersForSoManyEpochs) {
  quern::FinetuneOptions twice = options("twice");
  twice.epochs = 2;
  twice.rank = 4;
  twice.targets = {"c_attn", "mlp.c_proj"};
  std::vector<quern::Step> steps;
  twice.on_step = [&](const quern::Step& step) {
    steps.push_back(step);
    return true;
  };
  const quern::TrainResult result = quern::finetune(twice);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(steps.size(), result.step);
  const quern::TrainResult once = quern::finetune(options("once"));
  EXPECT_GT(result.step, once.step);
  const std::string config = quern::Model::load(result.path).config();
  for (const char* line : {"rank = 4", "alpha = 32", "targets = [\"c_attn\",\n  \"mlp.c_proj\"]", "epochs = 2"}) {
    EXPECT_NE(config.find(line), std::string::npos) << line;
  }
}

TEST_F(PublicFinetune, NamedFieldsOverrideSettings) {
  quern::FinetuneOptions given = options("run");
  given.settings = {"train.batch=2", "optimizer.rate=0.5", "train.steps=1"};
  given.rate = 1e-3;
  const quern::TrainResult result = quern::finetune(given);
  EXPECT_EQ(result.step, 1u);
  const std::string config = quern::Model::load(result.path).config();
  EXPECT_NE(config.find("batch = 2"), std::string::npos);
  EXPECT_NE(config.find("rate = 0.001"), std::string::npos);
}

TEST_F(PublicFinetune, StoppedAndResumedHasTheSameWeights) {
  quern::FinetuneOptions whole = options("whole"), part = options("part");
  whole.steps = part.steps = 4;
  part.on_step = [](const quern::Step& step) { return step.step < 2; };
  const quern::TrainResult expected = quern::finetune(whole), stopped = quern::finetune(part);
  EXPECT_FALSE(stopped.finished);
  const quern::TrainResult resumed = quern::finetune({.out = part.out, .threads = 1, .resume = true});
  EXPECT_EQ(resumed.weights_hash, expected.weights_hash);
}

TEST_F(PublicFinetune, WhatIsMissingIsNamed) {
  quern::FinetuneOptions nothing, no_data = options("run"), bad = options("run"), resume = options("run");
  quern::FinetuneOptions full = options("run");
  no_data.data.clear();
  bad.targets = {"nowhere"};
  resume.resume = true;
  full.full = true;
  full.rank = 4;
  EXPECT_NE(message_of([&] { quern::finetune(nothing); }).find("out: expected a folder"), std::string::npos);
  EXPECT_NE(message_of([&] { quern::finetune(no_data); }).find("data: expected JSON Lines"), std::string::npos);
  EXPECT_NE(message_of([&] { quern::finetune(bad); }).find("nowhere"), std::string::npos);
  EXPECT_NE(message_of([&] { quern::finetune(resume); }).find("omit base"), std::string::npos);
  EXPECT_NE(message_of([&] { quern::finetune(full); }).find("lora.rank: expected 0 with full"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
