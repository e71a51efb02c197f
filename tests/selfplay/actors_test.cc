// Threads that play games: the rows of a synchronous run do not depend on how it was run.
#include "selfplay/actors.h"

#include <array>
#include <stdexcept>

#include "core/error.h"
#include "replay/sampler.h"
#include "searching.h"
#include "support/support.h"
#include "support/watchdog.h"

namespace quern::selfplay::test {
namespace {

using quern::test::Watchdog;
using replay::ReplayBuffer;

const TicTacToe kGame;
constexpr uint64_t kGamesPerGeneration = 25, kGenerations = 4;

ReplayBuffer new_buffer(const replay::RateLimit& limit = {}) {
  return ReplayBuffer::create(row_schema(kGame.spec()), {.capacity = 5000, .limit = limit, .prefault = false});
}

// All rows in the order of their ids.
std::vector<float> rows_of(const ReplayBuffer& buffer) {
  std::vector<float> rows;
  for (uint64_t id = 0; id < buffer.total_added(); ++id) {
    std::vector<float> planes(18), policy(9), outcome(3);
    const auto bytes = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
    const std::array columns = {bytes(planes), bytes(policy), bytes(outcome)};
    EXPECT_TRUE(buffer.read(id, columns));
    for (const std::vector<float>* part : {&planes, &policy, &outcome}) {
      rows.insert(rows.end(), part->begin(), part->end());
    }
  }
  return rows;
}

// A model that depends on everything it was trained on, as a network does.
std::shared_ptr<const Model> trained(const ReplayBuffer& buffer, uint64_t version) {
  uint64_t hash = version;
  for (const float value : rows_of(buffer)) hash = mix(hash * 31 + std::bit_cast<uint32_t>(value));
  return std::make_shared<HashedModel>(kGame, hash);
}

ActorSettings settings_for(size_t threads, size_t games, size_t cache, uint64_t lag = 1) {
  return {.play = {.simulations = 20, .cheap_simulations = 5, .full_share = 0.5f},
          .batch = {.games = games, .cache_positions = cache},
          .threads = threads,
          .games_per_generation = kGamesPerGeneration,
          .lag = lag};
}

struct State {  // of a run at the end of a generation: see Actors
  std::unique_ptr<ReplayBuffer> buffer;
  std::vector<VersionedModel> models;
};

State new_run() {
  State state{std::make_unique<ReplayBuffer>(new_buffer()), {}};
  state.models.push_back({0, std::make_shared<HashedModel>(kGame, 0)});
  return state;
}

// Plays and trains generations `first` to `end` - 1, and stops at the moment when a checkpoint would be written.
void run_generations(State& state, const ActorSettings& base, uint64_t first, uint64_t end) {
  ActorSettings settings = base;
  settings.first_game = first * kGamesPerGeneration;
  Actors actors(kGame, *state.buffer, settings, state.models);
  for (uint64_t generation = first; generation < end; ++generation) {
    ASSERT_TRUE(actors.await_generation(generation));
    state.models.push_back({generation + 1, trained(*state.buffer, generation)});
    if (generation + 1 < end) actors.publish(state.models.back().model);
  }
}

std::vector<float> rows_after_run(const ActorSettings& settings) {
  State state = new_run();
  run_generations(state, settings, 0, kGenerations);
  return rows_of(*state.buffer);
}

// What a run has to be: every game alone, with the weights of its generation.
std::vector<float> rows_played_alone(const ActorSettings& settings) {
  State state = new_run();
  for (uint64_t generation = 0; generation < kGenerations; ++generation) {
    const VersionedModel model = state.models[generation - std::min(settings.lag, generation)];
    for (uint64_t game = 0; game < kGamesPerGeneration; ++game) {
      const uint64_t number = generation * kGamesPerGeneration + game;
      add_rows(*state.buffer, play_alone(kGame, settings.play, *model.model, settings.seed, number));
    }
    state.models.push_back({generation + 1, trained(*state.buffer, generation)});
  }
  return rows_of(*state.buffer);
}

TEST(Actors, RowsDoNotDependOnThreadsBatchesOrTheCache) {
  const Watchdog watchdog("RowsDoNotDependOnThreadsBatchesOrTheCache");
  for (const uint64_t lag : {0u, 1u, 2u}) {
    const std::vector<float> expected = rows_played_alone(settings_for(1, 1, 0, lag));
    EXPECT_GT(expected.size(), 200u * 30);
    for (const size_t threads : {1u, 2u, 5u}) {
      for (const size_t games : {1u, 8u}) {
        for (const size_t cache : {0u, 1000u}) {
          EXPECT_TRUE(quern::test::same_bits(expected, rows_after_run(settings_for(threads, games, cache, lag))))
              << "lag " << lag << ", threads " << threads << ", games " << games << ", cache " << cache;
        }
      }
    }
  }
}

TEST(Actors, ASmallWindowOnlySlowsThemDown) {
  const Watchdog watchdog("ASmallWindowOnlySlowsThemDown");
  const std::vector<float> expected = rows_after_run(settings_for(1, 1, 0));
  for (const size_t window : {1u, 2u, 7u}) {
    ActorSettings settings = settings_for(3, 8, 100);
    settings.window = window;
    EXPECT_TRUE(quern::test::same_bits(expected, rows_after_run(settings))) << window;
  }
}

TEST(Actors, AResumedRunAddsTheSameRows) {
  const Watchdog watchdog("AResumedRunAddsTheSameRows");
  for (const uint64_t lag : {0u, 1u, 2u}) {
    const ActorSettings settings = settings_for(2, 8, 100, lag);
    const std::vector<float> expected = rows_after_run(settings);
    for (uint64_t stop = 1; stop < kGenerations; ++stop) {
      State state = new_run();
      run_generations(state, settings, 0, stop);
      const auto needed = static_cast<ptrdiff_t>(std::min<uint64_t>(lag, stop) + 1);
      state.models.erase(state.models.begin(), state.models.end() - needed);
      run_generations(state, settings, stop, kGenerations);
      EXPECT_TRUE(quern::test::same_bits(expected, rows_of(*state.buffer))) << "lag " << lag << ", stop " << stop;
    }
  }
}

TEST(Actors, TheBufferDoesNotChangeBetweenAGenerationAndItsVersion) {
  const Watchdog watchdog("TheBufferDoesNotChangeBetweenAGenerationAndItsVersion");
  ReplayBuffer buffer = new_buffer();
  const VersionedModel first{0, std::make_shared<HashedModel>(kGame, 0)};
  Actors actors(kGame, buffer, settings_for(2, 8, 0), {&first, 1});
  ASSERT_TRUE(actors.await_generation(0));
  const uint64_t rows = buffer.total_added();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the next generation is played meanwhile
  EXPECT_EQ(buffer.total_added(), rows);
  EXPECT_EQ(actors.committed(), kGamesPerGeneration);
  EXPECT_EQ(actors.stats().games, kGamesPerGeneration);
  EXPECT_EQ(actors.stats().rows, rows);
  actors.publish(std::make_shared<HashedModel>(kGame, 1));
  ASSERT_TRUE(actors.await_generation(1));
  EXPECT_GT(buffer.total_added(), rows);
  EXPECT_GE(actors.stats().moves, actors.stats().games * 3);  // until a result is proven
}

TEST(Actors, EndAfterTheLastGame) {
  const Watchdog watchdog("EndAfterTheLastGame");
  ReplayBuffer buffer = new_buffer();
  ActorSettings settings = settings_for(3, 4, 100);
  settings.end_game = kGamesPerGeneration + 10;
  const VersionedModel first{0, std::make_shared<HashedModel>(kGame, 0)};
  Actors actors(kGame, buffer, settings, {&first, 1});
  EXPECT_TRUE(actors.await_generation(0));
  actors.publish(std::make_shared<HashedModel>(kGame, 1));
  EXPECT_FALSE(actors.await_generation(1));
  EXPECT_EQ(actors.committed(), kGamesPerGeneration + 10);
  actors.await_end();
}

// Evaluates when it is allowed to.
class GatedModel : public UniformModel {
 public:
  using UniformModel::UniformModel;
  void evaluate(std::span<const float> planes, std::span<float> logits, std::span<float> outcome) const override {
    open.wait(false);
    UniformModel::evaluate(planes, logits, outcome);
  }
  mutable std::atomic<bool> open{false};
};

TEST(Actors, AsynchronousGamesTakeTheNewestWeights) {
  const Watchdog watchdog("AsynchronousGamesTakeTheNewestWeights");
  ReplayBuffer buffer = new_buffer();
  ActorSettings settings = settings_for(3, 4, 0);
  settings.synchronous = false;
  settings.end_game = 400;
  const auto gated = std::make_shared<GatedModel>(kGame);
  const auto second = std::make_shared<HashedModel>(kGame, 1);
  const VersionedModel first{7, gated};
  Actors actors(kGame, buffer, settings, {&first, 1});
  actors.publish(second);
  gated->open = true;
  gated->open.notify_all();
  actors.await_end();
  EXPECT_EQ(actors.stats().games, 400u);
  EXPECT_EQ(actors.stats().rows, buffer.total_added());
  EXPECT_LE(gated->evaluations, 3u * 4 * 9 * 21);  // of the games that started before
  EXPECT_GT(second->evaluations, 388u * 5 * 5);
  EXPECT_EQ(gated->evaluations + second->evaluations, actors.stats().batches.evaluations);
}

TEST(Actors, WaitForTheRateLimitOfTheBuffer) {
  const Watchdog watchdog("WaitForTheRateLimitOfTheBuffer");
  ReplayBuffer buffer = new_buffer({.samples_per_insert = 1, .minimum = 1, .slack = 100});
  ActorSettings settings = settings_for(2, 4, 100);
  settings.synchronous = false;
  const VersionedModel first{0, std::make_shared<HashedModel>(kGame, 0)};
  Actors actors(kGame, buffer, settings, {&first, 1});
  const auto await_rows = [&](uint64_t rows) {
    while (buffer.total_added() < rows) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  await_rows(90);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(buffer.total_added(), 9u + 100 + 2 * 9);  // free, slack, and the game of each thread that found it open
  replay::Sampler sampler(buffer, 1);
  std::vector<float> outcome(3 * 50);
  const std::array<std::byte*, 3> columns = {nullptr, nullptr, reinterpret_cast<std::byte*>(outcome.data())};
  for (int i = 0; i < 4; ++i) sampler.sample({.rows = 50}, {columns});
  await_rows(290);
}  // and they stop although they wait

TEST(Actors, StopEndsWaitsAndGames) {
  const Watchdog watchdog("StopEndsWaitsAndGames");
  const VersionedModel first{0, std::make_shared<HashedModel>(kGame, 0)};
  for (const int pause : {0, 1, 30}) {
    ReplayBuffer buffer = new_buffer();
    Actors actors(kGame, buffer, settings_for(3, 4, 0, 0), {&first, 1});  // after a while all wait for version 1
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    actors.stop();
    EXPECT_FALSE(actors.await_generation(5));
    actors.await_end();
  }
}

TEST(Actors, LookEndsAWait) {
  const Watchdog watchdog("LookEndsAWait");
  ReplayBuffer buffer = new_buffer();
  const VersionedModel first{0, std::make_shared<HashedModel>(kGame, 0)};
  Actors actors(kGame, buffer, settings_for(2, 4, 0), {&first, 1});
  int looks = 0;
  const auto look = [&] {
    if (++looks == 3) throw std::runtime_error("interrupted");
  };
  EXPECT_THROW(actors.await_generation(5, look), std::runtime_error);
  EXPECT_EQ(looks, 3);
}

TEST(Actors, TheExceptionOfAThreadReachesTheCaller) {
  const Watchdog watchdog("TheExceptionOfAThreadReachesTheCaller");
  for (const bool synchronous : {true, false}) {
    ReplayBuffer buffer = new_buffer();
    ActorSettings settings = settings_for(3, 4, 0);
    settings.synchronous = synchronous;
    const VersionedModel first{0, std::make_shared<FailingModel>(kGame, 500)};
    Actors actors(kGame, buffer, settings, {&first, 1});
    try {
      actors.await_end();
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the network has failed");
    }
    EXPECT_THROW(actors.await_generation(9), std::runtime_error);
  }
}

std::string message_of(const ActorSettings& settings, ReplayBuffer& buffer, std::span<const VersionedModel> models) {
  try {
    const Actors actors(kGame, buffer, settings, models);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Actors, BadInputIsAnError) {
  ReplayBuffer buffer = new_buffer();
  const VersionedModel first{0, std::make_shared<UniformModel>(kGame)};
  const ActorSettings fine = settings_for(1, 1, 0);
  ActorSettings bad = fine;
  bad.threads = 0;
  EXPECT_EQ(message_of(bad, buffer, {&first, 1}), "[selfplay] threads: expected a number from 1 to 1024, found 0");
  bad = fine, bad.first_game = 7;
  EXPECT_EQ(message_of(bad, buffer, {&first, 1}),
            "[selfplay] first_game: expected a multiple of games_per_generation (25), found 7");
  bad = fine, bad.first_game = 75;
  EXPECT_EQ(message_of(bad, buffer, {&first, 1}), "[selfplay] models: expected versions 2 to 3, found 0 to 0");
  EXPECT_EQ(message_of(fine, buffer, {}), "[selfplay] models: expected at least one, found none");
  const VersionedModel none{0, nullptr};
  EXPECT_EQ(message_of(fine, buffer, {&none, 1}), "[selfplay] models: expected a model for version 0");
  bad = fine, bad.batch.games = 0;
  EXPECT_EQ(message_of(bad, buffer, {&first, 1}), "[selfplay] games at once: expected 1 to 65536, found 0");
  ReplayBuffer limited = new_buffer({.samples_per_insert = 2, .minimum = 1});
  EXPECT_EQ(message_of(fine, limited, {&first, 1}),
            "[selfplay] buffer: expected no limit of samples per insert in a synchronous run, found 2");
  ReplayBuffer other = ReplayBuffer::create(row_schema(Four().spec()), {.capacity = 10, .prefault = false});
  const std::string found = message_of(fine, other, {&first, 1});
  EXPECT_NE(found.find("[selfplay] buffer for toy-tictactoe: column 0"), std::string::npos) << found;
  EXPECT_NE(found.find("(2, 3, 3)"), std::string::npos) << found;
  EXPECT_NE(found.find("(2, 6, 7)"), std::string::npos) << found;
  Actors actors(kGame, buffer, fine, {&first, 1});
  EXPECT_THROW(actors.publish(nullptr), Error);
}

TEST(Actors, AVersionBeforeItsGenerationsIsAnError) {
  const Watchdog watchdog("AVersionBeforeItsGenerationsIsAnError");
  ReplayBuffer buffer = new_buffer();
  const VersionedModel first{0, std::make_shared<FailingModel>(kGame, 0)};  // so that no game ends
  Actors actors(kGame, buffer, settings_for(1, 1, 0), {&first, 1});
  EXPECT_THROW(actors.await_end(), std::runtime_error);
  try {
    actors.publish(std::make_shared<HashedModel>(kGame, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[selfplay] publish: expected 25 games in the buffer before version 1, found 0");
  }
}

}  // namespace
}  // namespace quern::selfplay::test
