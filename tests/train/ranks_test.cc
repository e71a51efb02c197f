// Any number of ranks, one result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "support/modern.h"
#include "support/watchdog.h"
#include "train/sequential.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

using test::Engine;
using test::kSanitized;
using test::RandomTokens;
using test::Trained;

constexpr uint32_t kVocabulary = 1300, kSteps = 3;

RunConfig small_config(uint64_t lanes) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 5, .width = 160, .context = 32, .vocabulary = 0, .dropout = 0.1};
  config.train.steps = 100;
  config.train.batch = 19;
  config.train.lanes = lanes;
  config.optimizer.warmup = 2;
  config.diagnostics.health_interval = 2;
  return config;
}

// What each rank has after the steps.
struct Rank {
  Trained trained;
  uint64_t own_floats = 0, bytes_sent = 0;
};

std::vector<Rank> train_on(size_t ranks, const RunConfig& config, const data::BatchSource& batches) {
  dist::ThreadRanks all(ranks);
  std::vector<Rank> results(ranks);
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Engine engine(config, batches, kVocabulary, {.ranks = &all[rank]});
      engine.steps(kSteps);
      const Ownership owners(engine.model.parameters(), engine.trainer.optimizer().units(), ranks);
      results[rank] = {.trained = engine.result(), .bytes_sent = engine.trainer.bytes_sent()};
      for (const size_t segment : owners.segments_of(rank)) {
        results[rank].own_floats += engine.model.parameters().segments()[segment].size;
      }
    });
  }
  return results;
}

struct Case {
  const char* name;
  uint64_t lanes;
  std::vector<size_t> ranks;
  void (*change)(RunConfig& config) = [](RunConfig&) {};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }  // NOLINT(readability-identifier-naming): gtest

class Ranks : public ::testing::TestWithParam<Case> {};

// Every rank has the weights, losses and norms of one process, and its own part of the moments, but no other.
TEST_P(Ranks, EqualOneProcess) {
  const ::quern::test::Watchdog watchdog(GetParam().name);
  RunConfig config = small_config(GetParam().lanes);
  GetParam().change(config);
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  const Trained expected = train_on(1, config, batches).front().trained;
  for (const size_t ranks : GetParam().ranks) {
    for (const uint64_t threads : {1, 2}) {
      if (kSanitized && (ranks != GetParam().ranks.front() || threads != 2)) continue;
      SCOPED_TRACE(fmt::format("{} ranks with {} threads", ranks, threads));
      config.train.threads = threads;
      std::vector<std::vector<float>> states(expected.states.size());
      for (const Rank& rank : train_on(ranks, config, batches)) {
        EXPECT_TRUE(rank.trained.weights == expected.weights);
        EXPECT_EQ(rank.trained.losses, expected.losses);
        EXPECT_EQ(rank.trained.norms, expected.norms);
        for (size_t i = 0; i < states.size(); ++i) {
          const std::vector<float>& own = rank.trained.states[i];
          states[i].resize(own.size());
          for (size_t k = 0; k < own.size(); ++k) {
            if (own[k] == 0) continue;
            EXPECT_EQ(states[i][k], 0.0f);  // of one rank only
            states[i][k] = own[k];
          }
        }
      }
      EXPECT_TRUE(states == expected.states);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, Ranks,
    ::testing::Values(Case{"lanes_8", 8, {5, 2, 3, 4, 8}}, Case{"lanes_7", 7, {2, 5, 7}}, Case{"lanes_19", 19, {3, 19}},
                      Case{"muon",
                           8,
                           {2, 3},
                           [](RunConfig& config) {
                             config.model = ::quern::test::modern(config.model);
                             config.optimizer.kind = OptimizerRule::kMuon;
                           }},
                      Case{"bf16", 8, {2, 5}, [](RunConfig& config) { config.train.precision = Precision::kBf16; }},
                      Case{"recomputed",
                           8,
                           {2, 5},
                           [](RunConfig& config) {
                             config.train.recompute = {.kind = Recompute::Kind::kEveryLayer};
                             config.train.accumulation = 3;
                           }},
                      Case{"many",
                           64,
                           {64},
                           [](RunConfig& config) {
                             config.model.layers = 1;
                             config.train.batch = 64;
                           }}),
    [](const auto& info) { return info.param.name; });

TEST(Ranks, EqualASequentialLoop) {
  const ::quern::test::Watchdog watchdog("sequential");
  RunConfig config = small_config(8);
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  const Trained expected = test::train_sequentially(config, batches, kVocabulary, kSteps);
  for (const Rank& rank : train_on(3, config, batches)) EXPECT_TRUE(rank.trained.weights == expected.weights);
}

// 4 bytes per weight: of each that a rank does not own for every node of its lanes, of each that it owns to all others.
TEST(Ranks, SendAsManyBytesAsTheFormulaSays) {
  const ::quern::test::Watchdog watchdog("bytes");
  const RunConfig config = small_config(8);
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  for (const size_t ranks : {2, 4, 8}) {
    for (const Rank& rank : train_on(ranks, config, batches)) {
      const uint64_t all = rank.trained.weights.size(), own = rank.own_floats;
      EXPECT_EQ(rank.bytes_sent, kSteps * 4 * ((all - own) + own * (ranks - 1)));
    }
  }
}

// A rank that fails ends the others.
TEST(Ranks, AFailureEndsAll) {
  const ::quern::test::Watchdog watchdog("failure");
  const RunConfig config = small_config(4);
  const RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  dist::ThreadRanks all(4);
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      TrainerOptions options{.ranks = &all[rank]};
      std::atomic<int> tasks = 0;
      if (rank == 2) {
        options.before_task = [&](const Task&, const Member&) {
          if (++tasks == 4) throw Error("[test] rank 2 fails");
        };
      }
      Engine engine(config, batches, kVocabulary, options);
      try {
        engine.steps(100);
        ADD_FAILURE() << "no failure";
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()), rank == 2 ? "[test] rank 2 fails" : "[dist] another rank has failed");
      }
    });
  }
}

}  // namespace
}  // namespace quern::train
