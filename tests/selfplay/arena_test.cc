// Matches.
#include "selfplay/arena.h"

#include <cmath>

#include "core/error.h"
#include "fake_models.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

const TicTacToe kGame;

MatchPlayer model_player(std::shared_ptr<const Model> model, uint32_t simulations) {
  return {.model = std::move(model), .simulations = simulations};
}

MatchPlayer random_player() {
  return {.make_chooser = [] { return std::make_unique<RandomChooser>(); }};
}

// Plays what leads to the best result.
class PerfectChooser : public MoveChooser {
 public:
  games::Action choose(const games::Position& position, std::span<const games::Action> legal, RandomWords&) override {
    for (const games::Action action : legal) {
      const std::unique_ptr<games::Position> next = position.clone();
      next->play(action);
      if (-perfect_score(*next) == perfect_score(position)) return action;
    }
    return legal[0];
  }
};

MatchPlayer perfect_player() {
  return {.make_chooser = [] { return std::make_unique<PerfectChooser>(); }};
}

MatchResult flipped(const MatchResult& result) { return {result.losses, result.draws, result.wins}; }

TEST(Match, SearchBeatsRandomMoves) {
  const MatchPlayer player = model_player(std::make_shared<UniformModel>(kGame), 100);
  const MatchResult result = play_match(kGame, player, random_player(), {.openings = 60, .opening_moves = 1});
  EXPECT_EQ(result.games(), 120u);
  EXPECT_GT(result.score(), 0.9);
  EXPECT_GT(result.elo(), 300);
}

TEST(Match, NobodyBeatsThePerfectPlayer) {
  const MatchResult result = play_match(kGame, perfect_player(), random_player(), {.openings = 40, .opening_moves = 0});
  EXPECT_EQ(result.losses, 0u);
  EXPECT_GT(result.wins, 60u);
  const MatchPlayer search = model_player(std::make_shared<PerfectModel>(kGame), 200);
  EXPECT_EQ(play_match(kGame, perfect_player(), search, {.openings = 5, .opening_moves = 0}).draws, 10u);
}

TEST(Match, EqualPlayersScoreAHalf) {
  const auto model = std::make_shared<HashedModel>(kGame, 3);
  const MatchResult result = play_match(kGame, model_player(model, 20), model_player(model, 20), {.openings = 50});
  EXPECT_EQ(result.wins, result.losses);
  EXPECT_EQ(result.score(), 0.5);
}

TEST(Match, IsSymmetricForPlayersThatDrawNoRandomNumbers) {
  const MatchPlayer a = model_player(std::make_shared<HashedModel>(kGame, 3), 20);
  const MatchPlayer b = model_player(std::make_shared<HashedModel>(kGame, 4), 50);
  const MatchSettings settings = {.openings = 50};
  const MatchResult result = play_match(kGame, a, b, settings);
  EXPECT_NE(result.wins, result.losses);
  EXPECT_EQ(play_match(kGame, b, a, settings), flipped(result));
}

TEST(Match, DoesNotDependOnThreadsOrBatches) {
  const MatchPlayer a = model_player(std::make_shared<HashedModel>(kGame, 3), 20);
  const MatchPlayer b = random_player();
  const MatchResult expected = play_match(kGame, a, b, {.openings = 40, .games_at_once = 1});
  for (const size_t threads : {1u, 2u, 5u}) {
    for (const size_t at_once : {1u, 3u, 64u}) {
      const MatchSettings settings = {.openings = 40, .threads = threads, .games_at_once = at_once};
      EXPECT_EQ(play_match(kGame, a, b, settings), expected);
    }
  }
  EXPECT_NE(play_match(kGame, a, b, {.openings = 40, .seed = 2}), expected);
}

TEST(Match, CountsByWhoBegan) {
  const MatchPlayer player = model_player(std::make_shared<HashedModel>(kGame, 3), 20);
  uint64_t last = 0;
  const MatchSettings settings = {.openings = 30, .opening_moves = 0, .progress = [&](uint64_t done, uint64_t total) {
                                    EXPECT_GE(done, last);
                                    EXPECT_EQ(total, 60u);
                                    last = done;
                                  }};
  const MatchSides sides = play_match_sides(kGame, player, random_player(), settings);
  EXPECT_GT(last, 0u);
  EXPECT_EQ(sides.began.games(), 30u);
  EXPECT_EQ(sides.replied.games(), 30u);
  EXPECT_GT(sides.began.score(), sides.replied.score());  // it is an advantage
  last = 0;
  EXPECT_EQ(play_match(kGame, player, random_player(), settings), sides.total());
}

TEST(Match, WithoutSimulationsTheHighestPriorIsPlayed) {
  const MatchPlayer greedy = model_player(std::make_shared<HashedModel>(kGame, 3), 0);
  const MatchPlayer search = model_player(std::make_shared<HashedModel>(kGame, 3), 300);
  EXPECT_GT(play_match(kGame, search, greedy, {.openings = 40}).score(), 0.7);
}

TEST(Match, BadInputIsAnError) {
  const MatchPlayer fine = random_player();
  EXPECT_THROW(play_match(kGame, fine, {}, {}), Error);
  EXPECT_THROW(play_match(kGame, fine, fine, {.openings = 0}), Error);
  EXPECT_THROW(play_match(kGame, fine, fine, {.threads = 0}), Error);
  EXPECT_THROW(play_match(kGame, fine, fine, {.opening_moves = 9}), Error);  // the game is always over then
  class Cheat : public MoveChooser {
    games::Action choose(const games::Position&, std::span<const games::Action>, RandomWords&) override { return 4; }
  };
  const MatchPlayer cheat = {.make_chooser = [] { return std::make_unique<Cheat>(); }};
  try {
    play_match(kGame, fine, cheat, {.threads = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[selfplay] match: expected a legal move from a player, found action 4");
  }
}

TEST(MatchResult, EloAndItsInterval) {
  const MatchResult even = {40, 20, 40};
  EXPECT_EQ(even.score(), 0.5);
  EXPECT_NEAR(even.elo(), 0, 1e-9);
  EXPECT_NEAR(even.score_interval().low, 0.4038, 1e-4);  // Wilson's interval for 50 of 100
  EXPECT_NEAR(even.score_interval().high, 0.5962, 1e-4);
  EXPECT_NEAR(even.elo_interval().high, -even.elo_interval().low, 1e-9);
  const MatchResult better = {75, 0, 25};
  EXPECT_NEAR(better.elo(), 190.85, 0.01);  // 400 log10 3
  const MatchResult all = {100, 0, 0};
  EXPECT_EQ(all.elo(), INFINITY);
  EXPECT_NEAR(all.score_interval().low, 0.9630, 1e-4);
  EXPECT_EQ(all.score_interval().high, 1);
  EXPECT_EQ(MatchResult{}.score(), 0.5);
  EXPECT_EQ(MatchResult{}.elo_interval().low, -INFINITY);
}

}  // namespace
}  // namespace quern::selfplay::test
