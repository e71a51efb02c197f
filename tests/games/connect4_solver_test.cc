#include "games/connect4_solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "games/connect4.h"
#include "games/connect4_positions.h"
#include "tests/games/games_support.h"
#include "tests/support/message.h"

namespace quern::games {
namespace {

using Board = Connect4Board;

Board board_of(std::string_view moves) { return connect4_board(*make_connect4()->parse_position(moves)); }

// The score by trying every move, without a table.
int slow_score(const Board& board, int alpha = -21, int beta = 21) {
  if (board.lost()) return -(22 - (board.stones() + 1) / 2);
  if (board.all == Board::kBoard) return 0;
  for (int column = 0; column < Board::kColumns && alpha < beta; ++column) {
    if (!board.can_play(column)) continue;
    Board next = board;
    next.play(column);
    alpha = std::max(alpha, -slow_score(next, -beta, -alpha));
  }
  return alpha;
}

Outcome sign(int score) { return score > 0 ? Outcome::kWin : score < 0 ? Outcome::kLoss : Outcome::kDraw; }

TEST(Connect4Solver, AgreesWithTryingEveryMove) {
  Connect4Solver solver(16), outcomes(16);
  size_t wins = 0, draws = 0, losses = 0, compared = 0;
  for (const auto& [moves, board] : connect4_test_positions(Stage::kEnd, 1'500, 1)) {
    const int expected = slow_score(board);
    ASSERT_EQ(solver.score(board), expected) << moves;
    ASSERT_EQ(outcomes.outcome(board), sign(expected)) << moves;
    wins += expected > 0, draws += expected == 0, losses += expected < 0;
    ++compared;
  }
  EXPECT_EQ(compared, 1'500u);
  EXPECT_GT(std::min({wins, draws, losses}), 50u);
}

TEST(Connect4Solver, AgreesWithTryingEveryMoveInTheMiddle) {
  Connect4Solver solver(18);
  size_t compared = 0;
  for (const auto& [moves, board] : connect4_test_positions(Stage::kMiddle, 600, 2)) {
    if (moves.size() < 26) continue;
    ASSERT_EQ(solver.score(board), slow_score(board)) << moves;
    ++compared;
  }
  EXPECT_GT(compared, 50u);
}

// The score follows from those of the moves, whatever the table has kept and lost: 2^10 entries overflow at once.
TEST(Connect4Solver, ScoresAreConsistentBetweenPositionsAndTables) {
  Connect4Solver small(10), large(20);
  for (const auto& [moves, board] : connect4_test_positions(Stage::kMiddle, 200, 3)) {
    if (moves.size() < 20) continue;
    int best = -21;
    for (int column = 0; column < Board::kColumns; ++column) {
      if (!board.can_play(column)) continue;
      Board next = board;
      next.play(column);
      best = std::max(best, -small.score(next));
    }
    ASSERT_EQ(large.score(board), best) << moves;
  }
}

TEST(Connect4Solver, KnowsTheFirstMove) {
  Connect4Solver solver(10);
  EXPECT_EQ(solver.outcome(board_of("")), Outcome::kWin);
  const std::vector<Outcome> replies = {Outcome::kWin,  Outcome::kWin, Outcome::kDraw, Outcome::kLoss,
                                        Outcome::kDraw, Outcome::kWin, Outcome::kWin};
  for (size_t i = 0; i < replies.size(); ++i) {
    const auto position = make_connect4()->parse_position(std::to_string(i + 1));
    EXPECT_EQ(solver.outcome(*position), replies[i]) << i;
    for (const Outcome wanted : {Outcome::kLoss, Outcome::kDraw, Outcome::kWin}) {
      EXPECT_EQ(solver.reaches(*position, wanted), replies[i] >= wanted) << i;
    }
  }
  EXPECT_EQ(solver.nodes(), 0u);
}

TEST(Connect4Solver, CountsTheStonesOfTheWinner) {
  Connect4Solver solver;
  EXPECT_EQ(solver.score(board_of("112233")), 22 - 4);      // wins with its 4th stone
  EXPECT_EQ(solver.score(board_of("1122334")), -(22 - 4));  // has lost
  EXPECT_EQ(solver.score(board_of("2233")), 22 - 4);        // two ends open: cannot be prevented
  EXPECT_EQ(solver.score(board_of("22334")), -(22 - 4));
}

TEST(Connect4Solver, KnowsTheOutcomeOfEachMove) {
  const auto game = make_connect4();
  Connect4Solver solver;
  for (const auto& [moves, board] : connect4_test_positions(Stage::kEnd, 300, 7)) {
    std::vector<Outcome> expected;
    for (int column = 0; column < Board::kColumns; ++column) {
      if (!board.can_play(column)) continue;
      Board next = board;
      next.play(column);
      expected.push_back(sign(-slow_score(next)));
    }
    ASSERT_EQ(solver.action_outcomes(*game->parse_position(moves)), expected) << moves;
  }
  // Two stones beside each other with two free ends: whatever the opponent does, it has lost.
  EXPECT_EQ(solver.action_outcomes(*game->parse_position("33445")), std::vector(7, Outcome::kLoss));
}

TEST(Connect4Solver, SolvesTheBeginning) {
  Connect4Solver solver;
  for (const auto& [moves, board] : connect4_test_positions(Stage::kBegin, 40, 4)) {
    if (moves.size() < 12) continue;
    ASSERT_EQ(solver.outcome(board), sign(solver.score(board))) << moves;
  }
}

TEST(MakeSolver, KnowsGamesAndRefusesOthers) {
  EXPECT_EQ(make_solver("tictactoe")->outcome(*make_game("tictactoe")->start()), Outcome::kDraw);
  EXPECT_EQ(make_solver("connect4")->outcome(*make_game("connect4")->parse_position("112233")), Outcome::kWin);
  EXPECT_EQ(test::message_of([] { make_solver("chess"); }),
            "[games] solver: expected a game with a solver, tictactoe or connect4, found 'chess'");
}

TEST(Connect4Positions, AreDifferentUnfinishedAndReproducible) {
  const auto game = make_connect4();
  const std::pair<size_t, size_t> ranges[] = {{8, 14}, {15, 28}, {29, 40}};
  for (const Stage stage : {Stage::kBegin, Stage::kMiddle, Stage::kEnd}) {
    std::set<uint64_t> keys;
    const auto positions = connect4_test_positions(stage, 300, 5), again = connect4_test_positions(stage, 300, 5);
    for (size_t i = 0; i < positions.size(); ++i) {
      EXPECT_EQ(positions[i].moves, again[i].moves);
      EXPECT_EQ(connect4_board(*game->parse_position(positions[i].moves)), positions[i].board);
      EXPECT_FALSE(positions[i].board.over());
      const auto [least, most] = ranges[static_cast<size_t>(stage)];
      EXPECT_TRUE(positions[i].moves.size() >= least && positions[i].moves.size() <= most);
      keys.insert(positions[i].board.key());
    }
    EXPECT_EQ(keys.size(), 300u);
    EXPECT_NE(connect4_test_positions(stage, 1, 6)[0].moves, positions[0].moves);
  }
}

}  // namespace
}  // namespace quern::games
