// Actors add episodes while others draw sequences and n-step returns: none ever crosses the end of an episode.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "replay/n_step.h"
#include "replay/shared_sampler.h"
#include "tests/replay/episode_rows.h"
#include "tests/replay/processes.h"
#include "tests/support/watchdog.h"

namespace quern::replay {
namespace {

using test::Actor;
using test::EpisodeRows;

constexpr size_t kReward = 3;

// Adds until `stop`. Actors have different numbers, so that their rows are not mistaken for each other's.
template <typename Stop>
void play(ReplayBuffer& buffer, uint64_t number, const Stop& stop, std::atomic<uint64_t>& added) {
  constexpr size_t kMost = 5;
  Actor actor(number);
  Streams streams(1);
  EpisodeRows rows(kMost);
  for (uint64_t i = 0; !stop(); ++i) {
    const size_t count = 1 + i % kMost;
    actor.fill(rows, count);
    buffer.add(rows.inputs(), count, {}, {}, streams.get());
    added.fetch_add(count, std::memory_order_relaxed);
    if (i % 97 == 0) {  // and sometimes leaves its episode
      actor.abandon();
      streams.reset();
    }
  }
}

// Of one call of sample_n_step(): wrong returns, and rows whose `next` is not the row `steps` later.
uint64_t wrong_returns(SharedSampler& sampler, const SampleRequest& starts, size_t n) {
  EpisodeRows rows(starts.rows), next(starts.rows);
  std::vector<float> returns(starts.rows), discounts(starts.rows);
  std::vector<uint64_t> steps(starts.rows);
  const std::vector<std::byte*> columns = rows.outputs(), after = next.outputs();
  sampler.sample_n_step({.starts = starts, .n = n, .gamma = 0.5, .reward = kReward}, {.columns = columns,
                                                                                      .next = after,
                                                                                      .last = {},
                                                                                      .returns = returns.data(),
                                                                                      .discounts = discounts.data(),
                                                                                      .steps = steps.data()});
  uint64_t wrong = 0;
  for (size_t i = 0; i < starts.rows; ++i) {
    double sum = 0, discount = 1;
    for (uint64_t k = 0; k < steps[i]; ++k, discount /= 2) {
      sum += discount * test::reward_of(rows.actor[i], rows.episode[i], rows.step[i] + k);
    }
    const uint64_t left = test::length_of(rows.actor[i], rows.episode[i]) - rows.step[i];
    const bool terminal = discounts[i] == 0;
    const bool good = rows.actor[i] == next.actor[i] && rows.episode[i] == next.episode[i] &&
                      next.step[i] == rows.step[i] + steps[i] - (terminal ? 1 : 0) &&
                      steps[i] <= std::min<uint64_t>(n, left) && returns[i] == static_cast<float>(sum) &&
                      (terminal || discounts[i] == static_cast<float>(discount)) &&
                      terminal == (left <= n && steps[i] == left && next.terminal[i] != 0);
    wrong += good ? 0 : 1;
  }
  return wrong;
}

uint64_t wrong_sequences(SharedSampler& sampler, const SampleRequest& starts, size_t length, bool pad) {
  EpisodeRows rows(starts.rows * length);
  std::vector<uint64_t> lengths(starts.rows);
  const std::vector<std::byte*> columns = rows.outputs();
  sampler.sample_sequences({.starts = starts, .length = length, .pad = pad},
                           {.columns = columns, .lengths = lengths.data()});
  uint64_t wrong = 0;
  for (size_t i = 0; i < starts.rows; ++i) wrong += test::fault_in(rows, i * length, lengths[i]).empty() ? 0 : 1;
  return wrong;
}

struct DrawCounts {
  std::atomic<uint64_t>& draws;
  std::atomic<uint64_t>& wrong;
};

// Draws until `stop`, by every rule and of both kinds.
template <typename Stop>
void draw(const ReplayBuffer& buffer, uint64_t seed, const Stop& stop, const DrawCounts& counts) {
  constexpr size_t kRows = 64;
  SharedSampler sampler(buffer, Seed(seed));
  for (uint64_t i = seed; !stop(); ++i) {
    SampleRequest starts{.rows = kRows, .half_life = static_cast<double>(buffer.capacity()) / 2};
    if (i % 5 == 1) starts.rule = Rule::kRecent;
    if (i % 5 == 2 && buffer.tree() != nullptr) starts.rule = Rule::kPrioritised;
    try {
      const size_t length = 1 + i % 12;
      counts.wrong +=
          i % 2 == 0 ? wrong_returns(sampler, starts, length) : wrong_sequences(sampler, starts, length, i % 3 == 0);
      counts.draws.fetch_add(kRows, std::memory_order_relaxed);
    } catch (const Error&) {  // nothing to draw yet
    }
  }
}

// A second, or as long as asked, and then until enough was drawn.
template <typename Step>
void run_until_enough(const std::atomic<uint64_t>& draws, uint64_t enough, const Step& step) {
  const double seconds = test::stress_seconds();
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds) || draws.load() < enough) {
    step();
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(seconds + 60)) break;
  }
}

constexpr uint64_t kEnough = 20000;

void stress_threads(uint64_t capacity, bool prioritised) {
  const test::Watchdog watchdog("episodes", std::chrono::seconds(180 + static_cast<int>(test::stress_seconds())));
  ReplayBuffer buffer = ReplayBuffer::create(test::episode_schema(), test::episode_options(capacity, prioritised));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> added{0}, draws{0}, wrong{0};
  {
    std::vector<std::jthread> threads;
    const auto stopped = [&] { return stop.load(std::memory_order_relaxed); };
    for (uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] { play(buffer, t, stopped, added); });
      threads.emplace_back([&, t] { draw(buffer, t, stopped, {draws, wrong}); });
    }
    run_until_enough(draws, kEnough, [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
    stop = true;
  }
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GE(draws.load(), kEnough);
  EXPECT_GT(added.load(), 10 * capacity);
  std::printf("  %llu rows added, %llu sequences and returns drawn, %llu wrong\n",
              static_cast<unsigned long long>(added.load()), static_cast<unsigned long long>(draws.load()),
              static_cast<unsigned long long>(wrong.load()));
}

TEST(ReplayStressEpisodes, SmallRing) { stress_threads(300, false); }
TEST(ReplayStressEpisodes, Prioritised) { stress_threads(2000, true); }

// Actors are killed while they add, every 20 ms, and replaced by new ones.
class KillingEpisodesTest : public ProcessesTest {
 protected:
  pid_t start_actor(ReplayBuffer& inherited, uint64_t number) {
    return start_child([&, number] {
      const auto attached = number % 2 == 0 ? nullptr : std::make_unique<ReplayBuffer>(ReplayBuffer::attach(storage_));
      play(
          attached ? *attached : inherited, number, [&] { return shared_->stop.load(); }, shared_->added);
      return 0;
    });
  }

  void run(uint64_t capacity, bool prioritised) {
    const test::Watchdog watchdog("killed actors",
                                  std::chrono::seconds(180 + static_cast<int>(test::stress_seconds())));
    ReplayBuffer buffer =
        ReplayBuffer::create(test::episode_schema(), test::episode_options(capacity, prioritised), storage_);
    std::vector<pid_t> actors, readers;
    uint64_t number = 0, kills = 0;
    for (int i = 0; i < 3; ++i) actors.push_back(start_actor(buffer, ++number));
    for (uint64_t i = 0; i < 2; ++i) {
      readers.push_back(start_child([&, i] {
        draw(buffer, i, [&] { return shared_->stop.load(); }, {shared_->good, shared_->bad});
        return 0;
      }));
    }
    run_until_enough(shared_->good, kEnough, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      pid_t& victim = actors[kills++ % actors.size()];
      kill_and_wait(victim);
      victim = start_actor(buffer, ++number);
    });
    shared_->stop = true;
    for (const pid_t child : actors) EXPECT_EQ(wait_for(child), 0);
    for (const pid_t child : readers) EXPECT_EQ(wait_for(child), 0);
    EXPECT_EQ(shared_->bad.load(), 0u);
    EXPECT_GE(shared_->good.load(), kEnough);
    std::printf("  %llu kills: %llu rows added, %llu sequences and returns drawn, %llu wrong\n",
                static_cast<unsigned long long>(kills), static_cast<unsigned long long>(shared_->added.load()),
                static_cast<unsigned long long>(shared_->good.load()),
                static_cast<unsigned long long>(shared_->bad.load()));
  }
};

TEST_F(KillingEpisodesTest, SmallRing) { run(300, false); }
TEST_F(KillingEpisodesTest, Prioritised) { run(5000, true); }

}  // namespace
}  // namespace quern::replay
