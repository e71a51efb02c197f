// The trainer from its making to its end, and what it leaves when something fails. Every wait has a watchdog.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.h"
#include "evaluate/evaluate.h"
#include "support/child_process.h"
#include "support/watchdog.h"
#include "train/sequential.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

using ::quern::test::Watchdog;
using test::Engine;
using test::kSanitized;
using test::RandomTokens;
using test::Trained;

constexpr uint32_t kVocabulary = 20;

struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};

// Steps of 32 x 8 tokens a micro-batch.
RunConfig short_steps(uint64_t threads, uint64_t micro_batches) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = 0, .dropout = 0.1};
  config.train.batch = 32 * micro_batches;
  config.train.threads = threads;
  return config;
}

TEST(TrainerLife, EvaluationsBetweenStepsDoNotChangeTheWeights) {
  const Watchdog watchdog("epochs");
  RunConfig config = short_steps(3, 1);
  config.train.batch = 5;
  config.data.sampling = Sampling::kEpoch;
  const RandomTokens tokens(100, kVocabulary), others(200, kVocabulary, 2);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  EXPECT_EQ(batches.steps_per_epoch(), 3u);
  const Trained expected = test::train_sequentially(config, batches, kVocabulary, 60);
  const data::ValidationBatches windows({&others, 0, others.size()}, 8);
  Engine engine(config, batches, kVocabulary);
  for (int i = 0; i < 20; ++i) {
    engine.steps(3);
    const double loss = engine.trainer.evaluate(windows);
    EXPECT_EQ(loss, evaluate(engine.model, windows, 1, nullptr).loss);
  }
  EXPECT_EQ(engine.state.step, 60u);
  EXPECT_TRUE(engine.result() == expected);
}

TEST(TrainerLife, ResumesWithOtherThreads) {
  const Watchdog watchdog("again");
  RunConfig config = short_steps(1, 5);
  const RandomTokens tokens(1000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  const Trained expected = test::train_sequentially(config, batches, kVocabulary, 12);
  Trained state;
  uint64_t done = 0;
  for (const uint64_t threads : {4, 1, 16, 3, 5, 2}) {
    config.train.threads = threads;
    Engine engine(config, batches, kVocabulary);
    if (done > 0) {
      std::copy(state.weights.begin(), state.weights.end(), engine.model.weights().values().begin());
      test::restore_states(state.states, engine.trainer.optimizer());
      engine.losses = state.losses;
      engine.norms = state.norms;
    }
    engine.state.step = engine.state.updates = done;
    engine.trainer.resume();
    engine.steps(2);
    state = engine.result();
    done += 2;
  }
  EXPECT_TRUE(state == expected);
}

// Back to a step before, while the prefetcher is far ahead.
TEST(TrainerLife, ResumesAnEarlierState) {
  const Watchdog watchdog("resume");
  const RunConfig config = short_steps(4, 3);
  const RandomTokens tokens(1000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  engine.steps(2);
  const Trained before = engine.result();
  engine.steps(3);
  const Trained expected = engine.result();
  std::copy(before.weights.begin(), before.weights.end(), engine.model.weights().values().begin());
  test::restore_states(before.states, engine.trainer.optimizer());
  engine.state.step = engine.state.updates = 2;
  engine.trainer.resume();
  engine.losses.resize(2);
  engine.norms.resize(2);
  engine.steps(3);
  EXPECT_TRUE(engine.result() == expected);
}

TEST(TrainerLife, DestructorInterruptsAStep) {
  const Watchdog watchdog("destroyed");
  const RandomTokens tokens(1000, kVocabulary);
  for (const uint64_t threads : {1, 2, 5, 16}) {
    for (const uint64_t micro_batches : {1, 4}) {
      const RunConfig config = short_steps(threads, micro_batches);
      const data::TrainingBatches batches = test::batches_of(config, tokens);
      for (int i = 0; i < (kSanitized ? 3 : 30); ++i) {
        const Engine without_a_step(config, batches, kVocabulary);
        Engine after_one(config, batches, kVocabulary);
        after_one.steps(1);
        if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the prefetcher is full, all sleep
      }
    }
  }
}

struct Place {
  TaskKind kind;
  bool leader;
};

// Throws in the n-th task of a kind that a leader, or another member, takes up.
TrainerOptions throwing(const Place& place, int n, size_t teams) {
  auto seen = std::make_shared<std::atomic<int>>(0);
  return {.teams = teams, .before_task = [=](const Task& task, const Member& member) {
            if (task.kind == place.kind && member.leads() == place.leader && seen->fetch_add(1) == n) throw Boom();
          }};
}

TEST(TrainerLife, RethrowsAWorkersException) {
  const Watchdog watchdog("exception");
  const RandomTokens tokens(1000, kVocabulary);
  for (const TaskKind kind : {TaskKind::kTrain, TaskKind::kJoin, TaskKind::kUpdate}) {
    for (const auto& [threads, teams] : {std::pair{1, 1}, {4, 4}, {3, 1}, {5, 2}}) {
      RunConfig config = short_steps(static_cast<uint64_t>(threads), 3);
      // So large a table has more segments than one thread would join.
      const uint32_t vocabulary = kind == TaskKind::kJoin ? 13'000 : kVocabulary;
      config.train.batch = kind == TaskKind::kJoin ? 24 : config.train.batch;
      config.model.context = kind == TaskKind::kJoin ? 3 : config.model.context;
      const data::TrainingBatches batches = test::batches_of(config, tokens);
      for (const bool leader : {true, false}) {
        if (!leader && threads == teams) continue;
        for (const int n : {0, 1, 3, 7}) {
          SCOPED_TRACE(fmt::format("kind {}, {} threads, {} teams, leader {}, at {}", static_cast<int>(kind), threads,
                                   teams, leader, n));
          Engine engine(config, batches, vocabulary, throwing({kind, leader}, n, static_cast<size_t>(teams)));
          EXPECT_THROW(engine.steps(10), Boom);
          EXPECT_LT(engine.state.step, 10u);
          EXPECT_THROW(engine.trainer.step(), Boom);
          EXPECT_THROW(engine.trainer.step(), Boom);
        }
      }
    }
  }
}

// More micro-batches than the prefetcher holds: when they do not come back, feeding must not wait for more.
TEST(TrainerLife, RethrowsWhileFeeding) {
  const Watchdog watchdog("feeding");
  const RandomTokens tokens(1000, kVocabulary);
  for (const auto& [threads, teams] : {std::pair{1, 1}, {4, 4}, {4, 2}}) {
    const RunConfig config = short_steps(static_cast<uint64_t>(threads), 500);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    for (const int n : {0, 1, 60, 490}) {
      Engine engine(config, batches, kVocabulary, throwing({TaskKind::kTrain, true}, n, static_cast<size_t>(teams)));
      EXPECT_THROW(engine.trainer.step(), Boom);
      EXPECT_THROW(engine.trainer.step(), Boom);
    }
  }
}

// All at the same moment: one of them is told.
TEST(TrainerLife, RethrowsTheFirstOfManyExceptions) {
  const Watchdog watchdog("exceptions");
  const RandomTokens tokens(1000, kVocabulary);
  const RunConfig config = short_steps(8, 4);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  for (int i = 0; i < (kSanitized ? 10 : 200); ++i) {
    Engine engine(config, batches, kVocabulary, {.before_task = [](const Task&, const Member&) { throw Boom(); }});
    EXPECT_THROW(engine.trainer.step(), Boom);
    EXPECT_THROW(engine.trainer.step(), Boom);
  }
}

// Tokens of which one cannot be read.
class Broken : public RandomTokens {
 public:
  Broken(size_t size, uint64_t bad) : RandomTokens(size, kVocabulary), bad_(bad) {}
  void copy(uint64_t position, size_t count, int32_t* out) const override {
    if (position <= bad_ && bad_ < position + count) throw Boom();
    RandomTokens::copy(position, count, out);
  }

 private:
  uint64_t bad_;
};

bool reads(const data::TrainingBatches& batches, const RunConfig& config, uint32_t step, uint64_t position) {
  for (uint32_t s = 0; s < config.train.batch; ++s) {
    const uint64_t first = batches.position(step, s);
    if (first <= position && position <= first + config.model.context) return true;
  }
  return false;
}

// The steps before the one that needs it are done.
TEST(TrainerLife, RethrowsAReadError) {
  const Watchdog watchdog("data");
  for (const uint64_t threads : {1, 3, 8}) {
    const RunConfig config = short_steps(threads, 4);
    const Broken broken(100'000, 4321);
    const data::TrainingBatches batches = test::batches_of(config, broken);
    uint32_t good = 0;
    while (!reads(batches, config, good, 4321)) ++good;
    ASSERT_GT(good, 2u);
    const RandomTokens whole(100'000, kVocabulary);
    const Trained expected = test::train_sequentially(config, test::batches_of(config, whole), kVocabulary, good);
    Engine engine(config, batches, kVocabulary);
    engine.steps(good);
    EXPECT_TRUE(engine.result() == expected);
    EXPECT_THROW(engine.trainer.step(), Boom);
    EXPECT_THROW(engine.trainer.step(), Boom);
  }
}

// A position that step 0 reads only in its last micro-batch.
uint64_t read_last(const data::TrainingBatches& batches, const RunConfig& config) {
  const auto last = static_cast<uint32_t>(config.train.batch - 1);
  for (uint64_t position = 0;; ++position) {
    uint32_t sequence = 0;
    while (sequence <= last && (position < batches.position(0, sequence) ||
                                position > batches.position(0, sequence) + config.model.context)) {
      ++sequence;
    }
    if (sequence <= last && sequence > last - 32) return position;
  }
}

// The step is half fed: there are micro-batches in the queue whose turn will never come.
TEST(TrainerLife, CanBeDestroyedAfterAReadError) {
  const Watchdog watchdog("half a step");
  for (const auto& [threads, teams] : {std::pair{2, 2}, {5, 2}, {8, 8}}) {
    const RunConfig config = short_steps(static_cast<uint64_t>(threads), 100);
    const RandomTokens whole(1'000'000, kVocabulary);
    const Broken broken(whole.size(), read_last(test::batches_of(config, whole), config));
    const data::TrainingBatches batches = test::batches_of(config, broken);
    for (int i = 0; i < (kSanitized ? 10 : 300); ++i) {
      Engine engine(config, batches, kVocabulary, {.teams = static_cast<size_t>(teams)});
      EXPECT_THROW(engine.trainer.step(), Boom);
    }
  }
}

TEST(TrainerLife, RethrowsAnExceptionOfAnEvaluation) {
  const Watchdog watchdog("evaluation");
  const RandomTokens tokens(1000, kVocabulary);
  const Broken broken(40'000, 37'000);
  const data::ValidationBatches good({&tokens, 0, tokens.size()}, 8), bad({&broken, 0, broken.size()}, 8);
  for (const uint64_t threads : {1, 3, 8, 64}) {
    const RunConfig config = short_steps(threads, 4);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    Engine engine(config, batches, kVocabulary);
    engine.steps(1);
    EXPECT_GT(engine.trainer.evaluate(good), 0);
    engine.steps(1);
    EXPECT_THROW(engine.trainer.evaluate(bad), Boom);
    EXPECT_THROW(engine.steps(1), Boom);  // its workers are gone
    EXPECT_THROW(engine.trainer.evaluate(good), Boom);
  }
}

// From here on this process gets at most `bytes` more.
void limit_address_space(size_t bytes) {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages;
  const size_t max = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limit = {max, max};
  setrlimit(RLIMIT_AS, &limit);
}

// As few threads as the system gives: an error, not the end of the program.
TEST(TrainerLife, TooManyThreadsAreAnError) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the address space that is taken away here";
  const int code = ::quern::test::run_in_child([] {
    const Watchdog watchdog("refused");
    const RandomTokens tokens(1000, kVocabulary);
    const RunConfig config = short_steps(64, 4);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    limit_address_space(size_t{100} << 20);  // 64 stacks of 8 MB are more
    try {
      const Engine engine(config, batches, kVocabulary);
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with("[workers] expected 64 threads, found that")) return 0;
      std::fprintf(stderr, "%s\n", error.what());
    }
    return 1;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace quern::train
