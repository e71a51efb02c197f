// Thousands of short steps with threads that stop anywhere for a while: the bits must be those of one thread.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "run/run.h"
#include "support/temporary_folder.h"
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

constexpr uint32_t kVocabulary = 11;

RunConfig shortest_steps(uint64_t threads, uint64_t batch) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 1, .width = 8, .context = 8, .vocabulary = 0, .dropout = 0.1};
  config.train.batch = batch;
  config.train.threads = threads;
  return config;
}

// Before every eighth task, on average: 0 to 60 us.
void sleep_at_times(const Task&, const Member&) {
  thread_local std::mt19937 random(std::hash<std::thread::id>()(std::this_thread::get_id()) & 0xffff);
  if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 60));
}

void expect_sequential_bits(const RunConfig& config, size_t teams, uint32_t steps) {
  SCOPED_TRACE(fmt::format("{} threads, {} teams, batch {}", config.train.threads, teams, config.train.batch));
  const RandomTokens tokens(1000, kVocabulary);
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  const Trained expected = test::train_sequentially(config, batches, kVocabulary, steps);
  Engine engine(config, batches, kVocabulary, {.teams = teams, .before_task = sleep_at_times});
  engine.steps(steps);
  EXPECT_TRUE(engine.result() == expected);
}

// A batch of 8 is one micro-batch, for all threads together; 32 sequences more are one micro-batch more.
TEST(TrainerStress, TenThousandStepsWithSleepingThreads) {
  const Watchdog watchdog("10,000 steps", std::chrono::seconds(500));
  constexpr uint32_t kUnit = kSanitized ? 40 : 1000;
  expect_sequential_bits(shortest_steps(4, 8), 0, 3 * kUnit);
  expect_sequential_bits(shortest_steps(3, 64), 0, 2 * kUnit);
  expect_sequential_bits(shortest_steps(8, 256), 0, 2 * kUnit);
  expect_sequential_bits(shortest_steps(2, 200), 0, kUnit);
  expect_sequential_bits(shortest_steps(8, 100), 0, kUnit);
  expect_sequential_bits(shortest_steps(5, 160), 2, kUnit);
}

#if !defined(__SANITIZE_THREAD__)  // which delivers signals only where it likes

// Sends signals to threads, whose handler sleeps: so they stop at any instruction, not only between tasks.
class Interrupter {
 public:
  Interrupter() {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      const timespec rest = {0, 20'000};
      nanosleep(&rest, nullptr);
    };
    sigaction(SIGUSR1, &action, nullptr);
  }
  ~Interrupter() {
    stop_ = true;
    sender_.join();
    // A thread that has not run since may have a signal on its way, which would end the program if all was as before.
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGUSR1, &ignore, nullptr);
  }
  // Called by a thread that wants to be interrupted, as often as it likes; it must outlive this.
  void watch_me() {
    thread_local const Interrupter* watched_by = nullptr;
    if (watched_by == this) return;
    watched_by = this;
    const std::lock_guard lock(mutex_);
    threads_.insert(pthread_self());
  }

 private:
  void send() {
    std::mt19937 random(5);
    while (!stop_) {
      {
        const std::lock_guard lock(mutex_);
        for (const pthread_t thread : threads_) {
          if (random() % 4 == 0) pthread_kill(thread, SIGUSR1);
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    }
  }

  std::mutex mutex_;
  std::set<pthread_t> threads_;
  std::atomic<bool> stop_{false};
  std::thread sender_{[this] { send(); }};
};

TEST(TrainerStress, StepsWithThreadsPausedByASignal) {
  const Watchdog watchdog("interrupted");
  for (const auto& [threads, batch] : {std::pair{4, 8}, {3, 64}, {8, 256}}) {
    const RunConfig config = shortest_steps(static_cast<uint64_t>(threads), static_cast<uint64_t>(batch));
    const RandomTokens tokens(1000, kVocabulary);
    const data::TrainingBatches batches = test::batches_of(config, tokens);
    constexpr uint32_t kSteps = kSanitized ? 50 : 500;
    const Trained expected = test::train_sequentially(config, batches, kVocabulary, kSteps);
    std::unique_ptr<Interrupter> interrupter;
    Engine engine(config, batches, kVocabulary,
                  {.before_task = [&](const Task&, const Member&) { interrupter->watch_me(); }});
    interrupter = std::make_unique<Interrupter>();
    engine.steps(kSteps);
    interrupter.reset();
    EXPECT_TRUE(engine.result() == expected);
  }
}

#endif

// A whole run: eight workers, evaluations and checkpoints, interrupted and resumed.
TEST(TrainerStress, EightWorkersEqualOneInARun) {
  const Watchdog watchdog("run", std::chrono::seconds(500));
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = 0, .dropout = 0.1};
  config.train.steps = 20;
  config.train.batch = 70;  // 9 micro-batches
  config.train.validation_interval = 3;
  config.train.validation_batches = 1;
  config.optimizer.warmup = 2;
  config.data.stories_bytes = 50'000;
  config.checkpoint.interval = 4;
  const ::quern::test::TemporaryFolder root;
  std::vector<std::string> hashes;
  for (const uint64_t threads : {1, 8}) {
    config.train.threads = threads;
    struct StopAfterSeven : Observer {
      void on_step(const StepReport& report) override { stop = report.step == 7; }
      std::atomic<bool> stop{false};
    } observer;
    const auto folder = root / std::to_string(threads);
    EXPECT_EQ(start_run(config, folder, observer, observer.stop).step, 7u);
    observer.stop = false;
    EXPECT_TRUE(resume_run(read_config(folder), folder, observer, observer.stop).finished);
    const auto found = checkpoint::find_newest_valid(folder / "checkpoints", [](const std::string&) {});
    ASSERT_TRUE(found.has_value());
    hashes.push_back(checkpoint::weights_hash(found->model()));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace quern::train
