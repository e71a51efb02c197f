// Single games of self-play: what is recorded, and how it depends on the settings.
#include "selfplay/game_player.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "searching.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

const TicTacToe kGame;
const PlaySettings kAll = {.simulations = 60, .cheap_simulations = 10, .full_share = 1};

std::unique_ptr<games::Position> position_after(const GameRecord& record, size_t moves) {
  std::unique_ptr<games::Position> position = kGame.start();
  for (size_t i = 0; i < moves; ++i) position->play(record.moves[i]);
  return position;
}

// One for every move, and one that proved the result without a move.
size_t searches(const GameRecord& record) {
  const bool over = position_after(record, record.moves.size())->over();
  return record.moves.size() - record.opening + (over ? 0 : 1);
}

TEST(GamePlayer, RecordsEveryPositionOfAFullSearchInOrder) {
  const HashedModel model(kGame, 1);
  for (uint64_t number = 0; number < 20; ++number) {
    const GameRecord record = play_alone(kGame, kAll, model, 3, number, 17);
    EXPECT_EQ(record.number, number);
    EXPECT_EQ(record.version, 17u);
    EXPECT_EQ(record.simulations, 60 * searches(record));
    ASSERT_EQ(record.rows, searches(record));
    ASSERT_EQ(record.planes.size(), record.rows * 18);
    for (size_t row = 0; row < record.rows; ++row) {
      std::vector<float> planes(18);
      position_after(record, row)->write_planes(planes);
      EXPECT_TRUE(quern::test::same_bits(planes, std::span(record.planes).subspan(row * 18, 18)));
    }
  }
}

TEST(GamePlayer, PoliciesAreSharesOfLegalMovesAndMinusOneElsewhere) {
  const HashedModel model(kGame, 1);
  const GameRecord record = play_alone(kGame, kAll, model, 3, 5);
  for (size_t row = 0; row < record.rows; ++row) {
    const std::unique_ptr<games::Position> position = position_after(record, row);
    std::vector<games::Action> legal;
    position->legal_actions(legal);
    const std::set<games::Action> moves(legal.begin(), legal.end());
    double sum = 0;
    for (games::Action action = 0; action < 9; ++action) {
      const float share = record.policies[row * 9 + action];
      if (moves.contains(action)) {
        EXPECT_GE(share, 0);
        sum += share;
      } else {
        EXPECT_EQ(share, -1);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(GamePlayer, EndsAsSoonAsTheResultIsCertain) {
  const HashedModel model(kGame, 2);
  size_t proven = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    const GameRecord record = play_alone(kGame, kAll, model, 1, number);
    proven += position_after(record, record.moves.size())->over() ? 0 : 1;
  }
  EXPECT_GT(proven, 20u);
}

TEST(GamePlayer, OutcomesAreTheResultFromTheMoversView) {
  const HashedModel model(kGame, 2);
  std::set<games::Outcome> seen;
  for (uint64_t number = 0; number < 40; ++number) {
    const GameRecord record = play_alone(kGame, kAll, model, 1, number);
    seen.insert(record.outcome);
    // A game ends when its result is certain, which is that of perfect play from there on.
    const std::unique_ptr<games::Position> end = position_after(record, record.moves.size());
    const int score = perfect_score(*end);
    EXPECT_EQ(static_cast<int>(record.outcome) - 1, end->player() == 0 ? score : -score);
    EXPECT_EQ(record.rows, searches(record));
    const bool drawn = score == 0;
    for (size_t row = 0; row < record.rows; ++row) {
      const bool wins = !drawn && (row % 2 == 0) == (record.outcome == Outcome::kWin);
      EXPECT_EQ(record.outcomes[3 * row], wins ? 1 : 0);
      EXPECT_EQ(record.outcomes[3 * row + 1], drawn ? 1 : 0);
      EXPECT_EQ(record.outcomes[3 * row + 2], !wins && !drawn ? 1 : 0);
    }
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(GamePlayer, MixesTheRootValueIntoTheOutcome) {
  const HashedModel model(kGame, 2);
  PlaySettings mixed = kAll, values = kAll;
  mixed.root_value_share = 0.25f;
  values.root_value_share = 1;
  const GameRecord pure = play_alone(kGame, kAll, model, 1, 0), half = play_alone(kGame, mixed, model, 1, 0),
                   root = play_alone(kGame, values, model, 1, 0);
  EXPECT_EQ(pure.moves, half.moves);
  EXPECT_NE(pure.outcomes, root.outcomes);
  for (size_t i = 0; i < pure.outcomes.size(); ++i) {
    EXPECT_NEAR(half.outcomes[i], 0.75 * pure.outcomes[i] + 0.25 * root.outcomes[i], 1e-6);
  }
}

TEST(GamePlayer, TheShareOfFullSearchesIsRecorded) {
  const HashedModel model(kGame, 2);
  PlaySettings settings = kAll;
  settings.full_share = 0.25f;
  uint64_t rows = 0, moves = 0, simulations = 0;
  for (uint64_t number = 0; number < 400; ++number) {
    const GameRecord record = play_alone(kGame, settings, model, 1, number);
    rows += record.rows, moves += searches(record), simulations += record.simulations;
  }
  EXPECT_NEAR(static_cast<double>(rows) / static_cast<double>(moves), 0.25, 0.04);
  EXPECT_EQ(simulations, rows * 60 + (moves - rows) * 10);
}

TEST(GamePlayer, OnlyFullSearchesHaveNoise) {
  const HashedModel model(kGame, 2);
  PlaySettings cheap = kAll, without = kAll;
  cheap.full_share = 0, cheap.cheap_simulations = cheap.simulations;
  without.noise_share = 0;
  size_t noisy = 0;
  for (uint64_t number = 0; number < 20; ++number) {
    const GameRecord record = play_alone(kGame, without, model, 1, number);
    EXPECT_EQ(play_alone(kGame, cheap, model, 1, number).moves, record.moves);
    noisy += play_alone(kGame, kAll, model, 1, number).policies != record.policies ? 1 : 0;
  }
  EXPECT_EQ(noisy, 20u);
}

TEST(GamePlayer, WithoutTemperatureAndNoiseGamesAreEqual) {
  const HashedModel model(kGame, 2);
  PlaySettings settings = kAll;
  settings.noise_share = 0;
  settings.temperature_moves = 0;
  std::set<std::vector<games::Action>> fixed, drawn;
  for (uint64_t number = 0; number < 20; ++number) fixed.insert(play_alone(kGame, settings, model, 1, number).moves);
  settings.temperature_moves = 10;
  for (uint64_t number = 0; number < 20; ++number) drawn.insert(play_alone(kGame, settings, model, 1, number).moves);
  EXPECT_EQ(fixed.size(), 1u);
  EXPECT_GT(drawn.size(), 10u);
}

TEST(GamePlayer, ResignsWhenItsScoreIsBelowTheThreshold) {
  const PerfectModel model(kGame);
  PlaySettings settings = kAll;
  settings.resign_below = -0.95f;  // of a drawn position, a few simulations may find nothing but losses
  settings.resign_share = 0.5f;
  settings.temperature = 5;  // mistakes, so that somebody is lost
  settings.simulations = 3;  // too few to prove it
  size_t resigned = 0, decided = 0;
  for (uint64_t number = 0; number < 200; ++number) {
    const GameRecord record = play_alone(kGame, settings, model, 1, number);
    decided += record.outcome != Outcome::kDraw ? 1 : 0;
    if (!record.resigned) continue;
    ++resigned;
    const std::unique_ptr<games::Position> end = position_after(record, record.moves.size());
    EXPECT_FALSE(end->over());
    EXPECT_EQ(perfect_score(*end), -1);
    EXPECT_EQ(record.outcome, end->player() == 0 ? Outcome::kLoss : Outcome::kWin);
    EXPECT_EQ(record.rows, record.moves.size() + 1);
    EXPECT_EQ(record.outcomes.back(), 1);  // lost
  }
  EXPECT_GT(resigned, 20u);
  EXPECT_LT(resigned, decided);  // the share of games where nobody may resign
  settings.resign_below = -1;
  for (uint64_t number = 0; number < 50; ++number) {
    EXPECT_FALSE(play_alone(kGame, settings, model, 1, number).resigned);
  }
}

TEST(GamePlayer, OpeningsAreRandomMovesThatDoNotEndTheGameAndAreNotTrained) {
  const HashedModel model(kGame, 1);
  PlaySettings settings = kAll;
  settings.opening_share = 0.5f;
  settings.opening_moves = 8;
  std::set<size_t> lengths;
  std::set<std::vector<games::Action>> openings;
  size_t with = 0;
  for (uint64_t number = 0; number < 400; ++number) {
    const GameRecord record = play_alone(kGame, settings, model, 3, number);
    with += record.opening > 0;
    lengths.insert(record.opening);
    openings.insert({record.moves.begin(), record.moves.begin() + static_cast<ptrdiff_t>(record.opening)});
    EXPECT_FALSE(position_after(record, record.opening)->over());
    ASSERT_EQ(record.rows, searches(record));
    EXPECT_EQ(record.simulations, 60 * record.rows);
    std::vector<float> planes(18);
    position_after(record, record.opening)->write_planes(planes);
    EXPECT_TRUE(quern::test::same_bits(planes, std::span(record.planes).first(18)));
  }
  EXPECT_NEAR(static_cast<double>(with) / 400, 0.5 * 8 / 9, 0.08);  // a ninth of the openings has no moves
  EXPECT_GE(lengths.size(), 8u);
  EXPECT_GT(openings.size(), 120u);
}

bool can_win(const games::Position& position) {
  std::vector<games::Action> legal;
  position.legal_actions(legal);
  return std::ranges::any_of(legal, [&](auto action) { return position.result_after(action) == games::Outcome::kWin; });
}

TEST(GamePlayer, SomeGamesBeginWhereAMoveWins) {
  const HashedModel model(kGame, 1);
  PlaySettings settings = kAll;
  settings.full_share = 0;  // their only search is recorded nevertheless
  settings.opening_moves = 6;
  settings.winning_share = 0.5f;
  size_t with = 0;
  std::set<size_t> lengths;
  std::set<std::vector<games::Action>> openings;
  for (uint64_t number = 0; number < 400; ++number) {
    const GameRecord record = play_alone(kGame, settings, model, 3, number);
    EXPECT_EQ(record.opening == 0, record.rows == 0);
    if (record.opening == 0) continue;
    ++with;
    EXPECT_EQ(record.opening, record.moves.size());
    EXPECT_EQ(record.rows, 1u);
    EXPECT_TRUE(can_win(*position_after(record, record.opening)));
    EXPECT_TRUE(quern::test::same_bits(record.outcomes, std::vector<float>{1, 0, 0}));
    lengths.insert(record.opening);
    openings.insert(record.moves);
  }
  EXPECT_NEAR(static_cast<double>(with) / 400, 0.5, 0.08);
  EXPECT_EQ(lengths, (std::set<size_t>{4, 5, 6, 7, 8}));  // the first win is possible after four moves
  EXPECT_GT(openings.size(), 150u);

  settings.winning_share = 1;
  settings.opening_moves = 100;  // no game is that long often enough: it then begins as others do
  size_t without = 0;
  for (uint64_t number = 0; number < 100; ++number) {
    without += play_alone(kGame, settings, model, 3, number).opening == 0 ? 1 : 0;
  }
  EXPECT_LT(without, 10u);
}

TEST(GamePlayer, BadSettingsAreAnError) {
  const auto expect_refused = [](const char* message, const PlaySettings& settings) {
    try {
      GamePlayer player(kGame, settings);
      FAIL() << message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  };
  expect_refused("[selfplay] simulations: expected a number from 1 to 1000000000, found 0", {.simulations = 0});
  expect_refused("[selfplay] full_share: expected a number from 0 to 1, found 1.5", {.full_share = 1.5f});
  expect_refused("[selfplay] winning_share: expected a number from 0 to 0.25, found 0.5",
                 {.opening_share = 0.75f, .winning_share = 0.5f});
  expect_refused("[selfplay] noise_alpha: expected a number from 0.001 to 1000, found 0", {.noise_alpha = 0});
  expect_refused("[selfplay] temperature: expected a number from 0.01 to 100, found nan", {.temperature = NAN});
}

TEST(GamePlayer, BadEvaluationsAreAnError) {
  const std::vector<games::Action> actions = {0, 2};
  std::vector<float> priors(2);
  EXPECT_THROW(write_priors(std::vector<float>{0, 0, NAN}, actions, priors), Error);
  EXPECT_THROW(write_priors(std::vector<float>{INFINITY, 0, 0}, actions, priors), Error);
  write_priors(std::vector<float>{80, NAN, -80}, actions, priors);  // logits of illegal moves do not matter
  EXPECT_EQ(priors[0], 1);
  EXPECT_THROW(read_outcome(std::vector<float>{0.5f, 0.5f, NAN}), Error);
  EXPECT_THROW(read_outcome(std::vector<float>{0.5f, 0.6f, 0.5f}), Error);
  EXPECT_THROW(read_outcome(std::vector<float>{1.5f, -0.5f, 0}), Error);
}

}  // namespace
}  // namespace quern::selfplay::test
