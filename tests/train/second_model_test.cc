// The trainer and checkpoints know no model: a regressor is trained, saved and resumed like GPT-2.
#include <gtest/gtest.h>

#include <vector>

#include "checkpoint/tensor_refs.h"
#include "nn/regressor.h"
#include "support/temporary_folder.h"
#include "train/sequential.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

constexpr uint32_t kVocabulary = 29;

RunConfig config_with(uint64_t threads) {
  RunConfig config;
  config.model.context = 13;
  config.train.batch = 40;  // several micro-batches
  config.train.threads = threads;
  config.train.steps = 12;
  config.optimizer.warmup = 2;
  config.optimizer.rate = 0.02;
  return config;
}

struct Regression {
  Regression(const RunConfig& config, const data::BatchSource& batches)
      : plan(make_plan(config, nn::Regressor::declare({}))),
        model({}, plan.packed),
        trainer(config, plan, model, batches, state) {
    model.initialise(config.train.seed);
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) losses.push_back(trainer.step().loss);
  }
  std::vector<checkpoint::TensorRef> weights() {
    return checkpoint::tensor_refs(model.parameters(), model.weights().values());
  }
  std::vector<checkpoint::TensorRef> states() {
    return checkpoint::optimizer_refs(model.parameters(), trainer.optimizer());
  }
  std::string hash() { return checkpoint::weights_hash(weights()); }

  Plan plan;
  nn::Regressor model;
  RunState state;
  Trainer trainer;
  std::vector<double> losses;
};

TEST(SecondModel, LearnsBitIdenticallyWithAnyNumberOfThreads) {
  const test::RandomTokens tokens(3000, kVocabulary);
  const RunConfig config = config_with(1);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Regression one(config, batches);
  one.steps(12);
  EXPECT_LT(one.losses.back(), 0.5 * one.losses.front());
  for (const uint64_t threads : {2, 5, 16}) {
    Regression many(config_with(threads), batches);
    many.steps(12);
    EXPECT_EQ(many.hash(), one.hash()) << threads << " threads";
    EXPECT_EQ(many.losses, one.losses) << threads << " threads";
  }
}

TEST(SecondModel, ResumesBitIdenticallyFromACheckpoint) {
  const quern::test::TemporaryFolder folder;
  const test::RandomTokens tokens(3000, kVocabulary);
  const RunConfig config = config_with(3);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Regression uninterrupted(config, batches), first(config, batches), second(config, batches);
  uninterrupted.steps(12);
  first.steps(5);
  const auto path = checkpoint::save(folder.path(), {first.weights(), first.states()}, first.state, {});

  const checkpoint::Checkpoint saved(path);
  saved.load({second.weights(), second.states()});
  second.state = saved.state();
  second.trainer.resume();
  second.steps(7);
  EXPECT_EQ(second.hash(), uninterrupted.hash());
}

}  // namespace
}  // namespace quern::train
