#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "core/aligned_buffer.h"
#include "data/batch_source.h"
#include "data/token_buffer.h"
#include "nn/models/board.h"
#include "nn/models/transformer.h"
#include "quern/profile.h"
#include "support/allocations.h"
#include "support/modern.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

template <typename Body>
size_t allocations_of(const Body& body) {
  const size_t before = test::allocation_count.load();
  body();
  return test::allocation_count.load() - before;
}

// The test below could not fail otherwise.
TEST(Allocations, AreCountedForEveryAllocator) {
  if (!test::kCountsAllocations) GTEST_SKIP() << "not with this C library";
  void* volatile memory = nullptr;  // the compiler may leave out what nobody looks at
  EXPECT_EQ(allocations_of([] {}), 0u);
  EXPECT_GE(allocations_of([&] { memory = std::malloc(5); }), 1u);
  EXPECT_GE(allocations_of([&] { memory = std::realloc(memory, 5000); }), 1u);
  std::free(memory);
  EXPECT_GE(allocations_of([&] { memory = ::operator new(5); }), 1u);
  ::operator delete(memory);
  EXPECT_GE(allocations_of([&] { memory = AlignedBuffer<float>(100).data(); }), 1u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GE(allocations_of([&] { memory = AlignedBuffer<float>(10'000'000).data(); }), 1u);  // by mmap
#endif
  std::atomic<bool> go{false};
  std::thread other([&] {
    go.wait(false);
    memory = std::malloc(5);
    std::free(memory);
  });
  EXPECT_GE(allocations_of([&] {
              go = true;
              go.notify_all();
              other.join();
            }),
            1u);
}

// A search evaluates all the time.
TEST(BoardModel, EvaluationDoesNotAllocate) {
  if (!test::kCountsAllocations) GTEST_SKIP() << "not with this C library";
  const nn::BoardModel model({.squares = 9, .planes = 2, .actions = 9, .width = 32}, nn::Packing::for_inference());
  nn::Workspace work(model.activations(), {.sequences = 4});
  const std::vector<float> planes(10 * 18);
  std::vector<float> logits(10 * 9), outcomes(10 * 3);
  const nn::MicroBatch batch{.columns = {{kPlanesColumn, nullptr, planes.data()}}, .sequences = 10, .T = 9};
  model.evaluate(batch, logits.data(), outcomes.data(), work);
  EXPECT_EQ(allocations_of([&] { model.evaluate(batch, logits.data(), outcomes.data(), work); }), 0u);
}

// For one micro-batch a step and for many, with every worker that there can be.
TEST(Trainer, WarmStepDoesNotAllocate) {
  if (!test::kCountsAllocations) GTEST_SKIP() << "not with this C library";
  data::TokenBuffer tokens(61);
  for (int32_t i = 0; i < 5000; ++i) {
    const int32_t token = i * i % 61;
    tokens.append({&token, 1});
  }
  const auto check = [&](const RunConfig& config, const std::string& what) {
    const data::TrainingBatches batches(
        {&tokens, 0, tokens.size()},
        {.seed = 1, .context = 32, .sequences_per_step = static_cast<uint32_t>(2 * config.train.batch)});
    const Plan plan = make_plan(config, 61);
    nn::Transformer model(model_config(config, 61), plan.packed);
    model.initialise(1);
    Profile profile({.threads = plan.threads + 1, .events = 50});
    RunState state;
    Trainer trainer(config, plan, model, batches, state);
    for (int i = 0; i < 12; ++i) trainer.step();  // so that every worker had its turn
    EXPECT_EQ(allocations_of([&] {
                for (int i = 0; i < 6; ++i) trainer.step();
              }),
              0u)
        << what;
    trainer.set_profile(&profile);
    const ProfiledThread here(profile, plan.threads);
    EXPECT_EQ(allocations_of([&] { trainer.step(); }), 0u) << "profiled, " << what;
    const data::ValidationBatches windows({&tokens, 0, tokens.size()}, 32, 40);
    trainer.evaluate(windows);  // the pool is filled
    EXPECT_EQ(allocations_of([&] { trainer.evaluate(windows); }), 0u) << "evaluation, " << what;
  };
  RunConfig config;
  config.model = {.layers = 3, .heads = 2, .width = 32, .context = 32, .vocabulary = 61, .dropout = 0.1};
  config.train.accumulation = 2;
  for (const uint64_t threads : {1, 2, 0}) {
    for (const uint64_t batch : {1, 24}) {
      config.train.batch = batch;
      config.train.threads = threads;
      check(config, fmt::format("{} threads, batch {}", threads, batch));
    }
  }
  config.train.threads = 2;
  config.diagnostics.health_interval = 1;
  check(config, "every step measured");
  config.diagnostics.health_interval = 0;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    for (const char* recompute : {"none", "every-layer", "sqrt"}) {
      config.train.precision = precision;
      config.train.recompute = *parse_recompute(recompute);
      check(config, fmt::format("{}, {}", precision_name(precision), recompute));
    }
  }
  const RunConfig::Model gpt2 = config.model;
  for (const ::quern::test::ModelKind& model : ::quern::test::model_kinds()) {
    config.model = model.apply(gpt2);
    for (const OptimizerRule kind : {OptimizerRule::kAdamW, OptimizerRule::kMuon}) {
      config.optimizer.kind = kind;
      check(config, model.name + (kind == OptimizerRule::kMuon ? ", Muon" : ""));
    }
  }
}

}  // namespace
}  // namespace quern::train
