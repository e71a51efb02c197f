// Runs of several ranks are the run of one process, and can be resumed with any number of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "dist/thread_ranks.h"
#include "nn/models/transformer.h"
#include "optim/optimizer.h"
#include "run/ranked_states.h"
#include "run/run.h"
#include "support/modern.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

class RankedRunTest : public ::testing::Test {
 protected:
  static RunConfig small_config() {
    RunConfig config;
    config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 12;
    config.train.batch = 9;
    config.train.lanes = 8;
    config.train.threads = 1;
    config.train.validation_interval = 5;
    config.train.validation_batches = 3;
    config.optimizer.warmup = 2;
    config.data.stories_bytes = 50000;
    config.checkpoint.interval = 4;
    return config;
  }

  // The files of the newest checkpoint: weights, moments, state.
  static std::string files_of(const fs::path& folder) {
    const auto found = checkpoint::find_newest_valid(folder / "checkpoints", [](const std::string&) {});
    if (!found) return "none";
    std::string all;
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
      all += read_file(found->path() / name, 1 << 30);
    }
    return all;
  }

  // What each rank returned, or its error.
  struct Outcome {
    std::optional<RunResult> result = {};
    std::string error = "";
  };

  using Go = RunResult (*)(const RunConfig&, const fs::path&, Observer&, const std::atomic<bool>&, dist::Communicator*);
  static std::vector<Outcome> on_ranks(size_t count, Go go, const fs::path& folder, const RunConfig& config,
                                       uint64_t stop_after = 0,
                                       const std::function<void(size_t, RunConfig&)>& change = {}) {
    struct StopAfter : Observer {
      void on_step(const StepReport& report) override {
        if (report.step == step) stop = true;
      }
      uint64_t step = 0;
      std::atomic<bool> stop{false};
    };
    dist::ThreadRanks ranks(count);
    std::vector<Outcome> outcomes(count);
    {
      std::vector<std::jthread> threads;
      for (size_t rank = 0; rank < count; ++rank) {
        threads.emplace_back([&, rank] {
          StopAfter observer;
          if (rank == count / 2) observer.step = stop_after;  // one of them gets the signal
          RunConfig own = config;
          if (change) change(rank, own);
          try {
            outcomes[rank].result = go(own, folder, observer, observer.stop, &ranks[rank]);
          } catch (const Error& error) {
            outcomes[rank].error = error.what();
          }
        });
      }
    }
    return outcomes;
  }

  test::TemporaryFolder root_;
  std::atomic<bool> stop_{false};
};

TEST_F(RankedRunTest, AreTheRunOfOneProcess) {
  const test::Watchdog watchdog("ranked runs");
  for (const bool muon : {false, true}) {
    RunConfig config = small_config();
    config.model = muon ? test::modern(config.model) : test::llama(config.model);
    if (muon) {
      config.optimizer.kind = OptimizerRule::kMuon;
      config.data.sampling = Sampling::kEpoch;
    }
    const fs::path whole = root_ / fmt::format("whole-{}", muon);
    Observer quiet;
    const RunResult expected = start_run(config, whole, quiet, stop_);
    for (const size_t ranks : {2, 3, 5, 8}) {
      SCOPED_TRACE(fmt::format("{} ranks, muon {}", ranks, muon));
      const fs::path folder = root_ / fmt::format("ranks-{}-{}", ranks, muon);
      for (const Outcome& outcome : on_ranks(ranks, start_run, folder, config)) {
        ASSERT_TRUE(outcome.result.has_value()) << outcome.error;
        EXPECT_TRUE(outcome.result->finished);
        EXPECT_EQ(outcome.result->loss, expected.loss);
        EXPECT_EQ(outcome.result->validation_loss, expected.validation_loss);
      }
      EXPECT_EQ(files_of(folder), files_of(whole));
    }
  }
}

// Stopped after every few steps, and resumed with another number of ranks each time.
TEST_F(RankedRunTest, CanBeResumedByAnyNumberOfRanks) {
  const test::Watchdog watchdog("resumed");
  const RunConfig config = small_config();
  Observer quiet;
  start_run(config, root_ / "whole", quiet, stop_);
  const fs::path folder = root_ / "run";
  EXPECT_FALSE(on_ranks(3, start_run, folder, config, 2).front().result->finished);
  uint64_t step = 2;
  for (const size_t ranks : {1, 8, 5, 2, 4, 7}) {
    const std::vector<Outcome> outcomes = on_ranks(ranks, resume_run, folder, read_config(folder), step += 2);
    for (const Outcome& outcome : outcomes) {
      ASSERT_TRUE(outcome.result.has_value()) << outcome.error;
      EXPECT_EQ(outcome.result->step, std::min<uint64_t>(step, 12));
    }
  }
  EXPECT_EQ(files_of(folder), files_of(root_ / "whole"));
}

// Text whose batches depend on those before: a stream, shuffled, and a mixture. Read by every rank, or by rank 0 alone;
// one process, the same ranks, and ranks that change in the middle.
TEST_F(RankedRunTest, MayStreamMixAndBroadcastText) {
  const test::Watchdog watchdog("streams", std::chrono::minutes(4));
  std::string books, code;
  for (int i = 0; i < 900; ++i) books += fmt::format("Page {} of the book is about the number {}.\n", i, i * i % 97);
  for (int i = 0; i < 500; ++i) code += fmt::format("int f{0}() {{ return {0}; }}\n", i);
  write_file(root_ / "books.txt", books);
  write_file(root_ / "code.txt", code);
  const auto stream = [&](RunConfig& c) {
    c.data.sampling = Sampling::kStream;
    c.data.paths = {(root_ / "books.txt").string()};
  };
  const auto shuffled = [&](RunConfig& c) {
    stream(c);
    c.data.shuffle = 16;
  };
  const auto mixture = [&](RunConfig& c) {
    c.data.sources = {(root_ / "books.txt").string() + " 2", (root_ / "code.txt").string() + " 1"};
  };
  const auto mixed_streams = [&](RunConfig& c) {
    mixture(c);
    c.data.sampling = Sampling::kStream;
  };
  const auto random = [](RunConfig&) {};
  const std::vector<std::function<void(RunConfig&)>> kinds = {stream, shuffled, mixture, mixed_streams, random};
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    RunConfig config = small_config();
    kinds[kind](config);
    Observer quiet;
    const fs::path whole = root_ / fmt::format("whole-{}", kind);
    start_run(config, whole, quiet, stop_);
    for (const bool broadcast : {false, true}) {
      SCOPED_TRACE(fmt::format("kind {}, broadcast {}", kind, broadcast));
      config.data.broadcast = broadcast;
      const fs::path folder = root_ / fmt::format("run-{}-{}", kind, broadcast);
      for (const Outcome& outcome : on_ranks(3, start_run, folder, config, 5)) ASSERT_EQ(outcome.error, "");
      for (const Outcome& outcome : on_ranks(5, resume_run, folder, config, 9)) ASSERT_EQ(outcome.error, "");
      for (const Outcome& outcome : on_ranks(2, resume_run, folder, config)) ASSERT_EQ(outcome.error, "");
      EXPECT_TRUE(files_of(folder) == files_of(whole));
    }
  }
}

TEST_F(RankedRunTest, ChangesOfSettingsAreRecordedOnce) {
  const test::Watchdog watchdog("history");
  const RunConfig config = small_config();
  RunConfig longer = config;
  longer.train.steps = 20;
  longer.optimizer.rate = 1e-3;
  std::vector<std::string> files;
  for (const size_t ranks : {1, 3}) {
    const fs::path folder = root_ / std::to_string(ranks);
    on_ranks(ranks, start_run, folder, config);
    for (const Outcome& outcome : on_ranks(4, resume_run, folder, longer)) EXPECT_EQ(outcome.error, "");
    files.push_back(files_of(folder));
    RunConfig again = read_config(folder);
    EXPECT_EQ(again.history.size(), 2u);
    for (const Outcome& outcome : on_ranks(5, start_run, root_ / fmt::format("again-{}", ranks), again)) {
      EXPECT_EQ(outcome.error, "");
    }
    files.push_back(files_of(root_ / fmt::format("again-{}", ranks)));
  }
  for (const std::string& file : files) EXPECT_EQ(file, files.front());
}

// Sets a weight of the run's newest checkpoint to NaN.
void poison(const fs::path& folder, const RunConfig& config) {
  const auto found = checkpoint::find_newest_valid(folder / "checkpoints", [](const std::string&) {});
  nn::Transformer model(model_config(config, static_cast<uint32_t>(found->model().find("wte.weight")->shape[0])),
                        false);
  const auto optimizer = make_optimizer(model.parameters(), {});
  const auto weights = checkpoint::tensor_refs(model.parameters(), model.weights().values());
  const auto states = checkpoint::optimizer_refs(model.parameters(), *optimizer);
  found->load({weights, states});
  for (const checkpoint::TensorRef& ref : weights) {
    if (ref.name == "h.1.mlp.c_fc.weight") ref.values[0] = std::numeric_limits<float>::quiet_NaN();
  }
  checkpoint::save(folder / "checkpoints", {weights, states}, found->state(), {});
}

// Losses that jump or are not finite: undone, recorded and explained as by one process, with every policy.
TEST_F(RankedRunTest, IncidentsAreThoseOfOneProcess) {
  const test::Watchdog watchdog("incidents", std::chrono::minutes(5));
  for (const bool poisoned : {false, true}) {
    for (const Policy policy : {Policy::kRollback, Policy::kStop, Policy::kSkip}) {
#ifdef __SANITIZE_THREAD__
      if (policy != Policy::kRollback) continue;  // 50 s for all of them
#endif
      SCOPED_TRACE(fmt::format("policy {}, poisoned {}", policy_name(policy), poisoned));
      std::vector<std::string> files;
      std::vector<size_t> incidents;
      for (const size_t ranks : {1, 3}) {
        RunConfig config = small_config();
        const fs::path folder = root_ / fmt::format("{}-{}-{}", policy_name(policy), poisoned, ranks);
        config.train.steps = 24;
        on_ranks(ranks, start_run, folder, config);
        if (poisoned) poison(folder, config);
        config.train.steps = 32;
        config.optimizer.rate = poisoned ? 1e-3 : 10.0;
        config.diagnostics.spike_z = 6;
        config.diagnostics.policy = policy;
        config.diagnostics.incident_limit = 2;
        const std::string error = on_ranks(ranks, resume_run, folder, config).front().error;
        EXPECT_NE(error.find(poisoned ? "h.1.mlp.c_fc.weight contains NaN" : "deviations above"), std::string::npos)
            << error;
        files.push_back(files_of(folder));
        incidents.push_back(0);
        std::vector<fs::path> recorded;
        for (const auto& entry : fs::directory_iterator(folder / kIncidentFolder)) recorded.push_back(entry.path());
        std::sort(recorded.begin(), recorded.end());
        for (const fs::path& incident : recorded) {
          ++incidents.back();
          for (const char* name : {"incident.json", "optimizer.safetensors", "model.safetensors"}) {
            files.back() += read_file(incident / name, 1 << 28);
          }
        }
      }
      EXPECT_GT(incidents[0], 0u);
      EXPECT_EQ(incidents[0], incidents[1]);
      EXPECT_TRUE(files[0] == files[1]);
    }
  }
}

// A stage of the run has fewer lanes than there are ranks, and its steps have to be done.
TEST_F(RankedRunTest, EveryStageNeedsALaneForEachRank) {
  const test::Watchdog watchdog("lanes of stages");
  RunConfig config = small_config();
  config.train.lanes = 2;
  on_ranks(1, start_run, root_ / "run", config);
  config.train.steps = 20;
  config.train.lanes = 4;
  for (const Outcome& outcome : on_ranks(4, resume_run, root_ / "run", config)) EXPECT_EQ(outcome.error, "");
  const RunConfig history = read_config(root_ / "run");
  for (const Outcome& outcome : on_ranks(4, start_run, root_ / "again", history)) {
    EXPECT_NE(outcome.error.find("train.lanes: expected at least one for each of 4 ranks, found 2 from step 1 on"),
              std::string::npos)
        << outcome.error;
  }
  for (const Outcome& outcome : on_ranks(2, start_run, root_ / "again", history)) EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(files_of(root_ / "again") == files_of(root_ / "run"));
}

// Rank 0 alone writes, so it alone can fail to: the others save with it, and all end with its message.
TEST_F(RankedRunTest, AFailureOfRankZeroEndsAllAfterSaving) {
  const test::Watchdog watchdog("failure of rank 0");
  struct Fails : Observer {
    explicit Fails(uint64_t at) : step(at) {}
    void on_step(const StepReport& report) override {
      if (report.step == step) throw Error("[test] no space left");
    }
    uint64_t step;
  };
  for (const uint64_t step : {6, 8}) {  // a checkpoint is due at the second
    const fs::path folder = root_ / std::to_string(step);
    dist::ThreadRanks ranks(3);
    std::vector<std::string> errors(3);
    {
      std::vector<std::jthread> threads;
      for (size_t rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
          Fails fails(step);
          Observer quiet;
          try {
            start_run(small_config(), folder, rank == 0 ? fails : quiet, stop_, &ranks[rank]);
          } catch (const Error& error) {
            errors[rank] = error.what();
          }
        });
      }
    }
    for (const std::string& error : errors) EXPECT_EQ(error, "[test] no space left");
    EXPECT_EQ(checkpoint::list_steps(folder / "checkpoints").back(), step);
  }
}

TEST_F(RankedRunTest, DifferencesBetweenRanksAreNamedBeforeTheFirstStep) {
  const test::Watchdog watchdog("differences");
  RunConfig config = small_config();
  const auto expect = [&](const std::string& says, size_t ranks,
                          const std::function<void(size_t, RunConfig&)>& change) {
    const std::vector<Outcome> outcomes = on_ranks(ranks, start_run, root_ / "run", config, 0, change);
    for (const Outcome& outcome : outcomes) EXPECT_NE(outcome.error.find(says), std::string::npos) << outcome.error;
    EXPECT_FALSE(fs::exists(root_ / "run"));
  };
  expect("[dist] config: expected the same on every rank, found 'rate = 0.002' on rank 0 and 'rate = 0.001' on rank 2",
         3, [](size_t rank, RunConfig& c) { c.optimizer.rate = rank == 2 ? 1e-3 : 2e-3; });
  expect("[dist] train.lanes: expected at least one for each of 3 ranks, found 2 from step 1 on; start fewer ranks", 3,
         [](size_t, RunConfig& c) { c.train.lanes = 2; });
  expect("[dist] config: expected the same on every rank, found 'broadcast = true' on rank 0", 3,
         [](size_t rank, RunConfig& c) { c.data.broadcast = rank == 0; });
}

// Resident bytes of whole pages among `values`.
size_t resident_bytes(std::span<const float> values) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(values.data());
  const uintptr_t begin = (address + page - 1) / page * page, end = (address + values.size_bytes()) / page * page;
  std::vector<unsigned char> pages((end - begin) / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()), 0);
  return page * static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
}

// Segments of the ranks alternate, so a huge page of moments would have some of every rank.
TEST(RankedStates, TakeMemoryForOwnSegmentsOnly) {
  const nn::Transformer model(nn::ModelConfig{.layers = 4, .heads = 4, .width = 384, .context = 32, .vocabulary = 100},
                              false);
  const nn::ParameterTable& table = model.parameters();
  dist::ThreadRanks all(4);
  for (const bool loaded : {false, true}) {
    const auto optimizer = make_optimizer(table, {});
    const RunRanks ranks(&all[2]);
    RankedStates states(ranks, table, *optimizer);
    if (loaded) {
      for (OptimizerState& state : optimizer->states()) std::ranges::fill(state.values.span(), 1.0f);
    }
    states.release_foreign();
    const Ownership owners(table, optimizer->units(), 4);
    for (OptimizerState& state : optimizer->states()) {
      for (const size_t i : owners.segments_of(2)) {
        const nn::Segment& s = table.segments()[i];
        const nn::Parameter& parameter = table[s.parameter];
        const size_t first = state.offsets[static_cast<size_t>(s.parameter)] + s.offset - parameter.offset;
        EXPECT_EQ(state.values[first], loaded ? 1.0f : 0.0f);
        std::fill_n(state.values.data() + first, s.size, 2.0f);
      }
      const size_t whole = state.values.size_bytes(), resident = resident_bytes(state.values.span());
      EXPECT_GT(whole, size_t{20} << 20);
      EXPECT_NEAR(static_cast<double>(resident) / static_cast<double>(whole), 0.25, 0.02);
    }
  }
}

// A weight of one rank changes, as by a broken memory: an error that names it, and no checkpoint with it.
TEST_F(RankedRunTest, ABrokenRankIsAnError) {
  const test::Watchdog watchdog("broken");
  struct Breaks : Observer {
    void on_weights(uint64_t step, std::span<const NamedValues> weights) override {
      if (step != 6) return;
      for (const NamedValues& tensor : weights) {
        if (tensor.name == "h.1.attn.c_attn.weight") const_cast<float&>(tensor.values[5]) += 1e-6f;
      }
    }
  };
  RunConfig config = small_config();
  config.dist.check_interval = 3;
  config.log.tensorboard = true;
  config.log.histogram_interval = 1;  // shows the weights
  dist::ThreadRanks ranks(3);
  std::vector<std::string> errors(3);
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        Breaks breaks;
        Observer quiet;
        try {
          start_run(config, root_ / "run", rank == 2 ? breaks : quiet, stop_, &ranks[rank]);
        } catch (const Error& error) {
          errors[rank] = error.what();
        }
      });
    }
  }
  for (const std::string& error : errors) {
    EXPECT_NE(
        error.find("[dist] weights after step 6: expected the same on every rank, found 'h.1.attn.c_attn.weight "),
        std::string::npos)
        << error;
    EXPECT_NE(error.find("on rank 2"), std::string::npos) << error;
  }
  EXPECT_EQ(checkpoint::list_steps(root_ / "run" / "checkpoints"), std::vector<uint64_t>{4});
}

// Threads may differ: they do not affect the result.
TEST_F(RankedRunTest, RanksMayHaveDifferentNumbersOfThreads) {
  const test::Watchdog watchdog("threads");
  RunConfig config = small_config();
  Observer quiet;
  start_run(config, root_ / "whole", quiet, stop_);
  const auto threads = [](size_t rank, RunConfig& c) { c.train.threads = 1 + rank; };
  for (const Outcome& outcome : on_ranks(3, start_run, root_ / "run", config, 0, threads)) {
    EXPECT_EQ(outcome.error, "");
  }
  EXPECT_EQ(files_of(root_ / "run"), files_of(root_ / "whole"));
}

}  // namespace
}  // namespace quern::train
