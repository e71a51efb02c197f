#include "games/tictactoe.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "games/tictactoe_solver.h"
#include "tests/games/games_support.h"
#include "tests/support/message.h"

namespace quern::games {
namespace {

// Visits every position that can be reached; `games` counts the ways to play a game to its end.
void visit_all(const Position& position, std::unordered_map<uint64_t, bool>& seen, size_t& games) {
  seen.emplace(position.hash(), position.over());
  games += position.over();
  for (const Action action : legal(position)) {
    const auto next = position.clone();
    next->play(action);
    visit_all(*next, seen, games);
  }
}

TEST(TicTacToe, HasAsManyPositionsAndGamesAsKnown) {
  const auto game = make_tictactoe();
  std::unordered_map<uint64_t, bool> seen;
  size_t games = 0;
  visit_all(*game->start(), seen, games);
  EXPECT_EQ(games, 255'168u);
  EXPECT_EQ(seen.size(), 5'478u);
  size_t over = 0;
  for (const auto& [hash, is_over] : seen) over += is_over;
  EXPECT_EQ(over, 958u);
}

TEST(TicTacToe, PlanesAreOwnMarksAndThoseOfTheOpponent) {
  const auto game = make_tictactoe();
  const auto position = game->parse_position("195");
  const std::vector<float> expected = {0, 0, 0, 0, 0, 0, 0, 0, 1,  //
                                       1, 0, 0, 0, 1, 0, 0, 0, 0};
  EXPECT_EQ(planes(*game, *position), expected);
  EXPECT_EQ(game->draw(*position), "X . .\n. X .\n. . O\n");
}

TEST(TicTacToe, TranspositionsHaveOneHash) {
  const auto game = make_tictactoe();
  EXPECT_EQ(game->parse_position("195")->hash(), game->parse_position("591")->hash());
  EXPECT_NE(game->parse_position("195")->hash(), game->parse_position("159")->hash());
}

TEST(TicTacToe, WrongTextsAreErrors) {
  const auto game = make_tictactoe();
  EXPECT_EQ(test::message_of([&] { game->parse_position("11"); }),
            "[tictactoe] position '11': expected one of 2, 3, 4, 5, 6, 7, 8, 9 at place 2, found '1'");
  EXPECT_EQ(test::message_of([&] { game->parse_position("142536"); }),
            "[tictactoe] position '142536': expected no move, because the game is over at place 6, found '6'");
  EXPECT_EQ(test::message_of([&] { game->parse_action(*game->parse_position("1234567"), "10"); }),
            "[tictactoe] move: expected no move, because the game is over, found '10'");
}

TEST(TicTacToeSolver, KnowsTheResultsOfPerfectPlay) {
  const auto game = make_tictactoe();
  TicTacToeSolver solver;
  EXPECT_EQ(solver.outcome(*game->start()), Outcome::kDraw);
  // After a corner, only the centre draws; after the centre, only corners.
  std::vector<Outcome> only_centre(8, Outcome::kLoss);
  only_centre[3] = Outcome::kDraw;
  EXPECT_EQ(solver.action_outcomes(*game->parse_position("1")), only_centre);
  using enum Outcome;
  EXPECT_EQ(solver.action_outcomes(*game->parse_position("5")),
            (std::vector{kDraw, kLoss, kDraw, kLoss, kLoss, kDraw, kLoss, kDraw}));
  EXPECT_EQ(solver.outcome(*game->parse_position("12")), kWin);
  EXPECT_EQ(solver.outcome(*game->parse_position("14253")), kLoss);
}

}  // namespace
}  // namespace quern::games
