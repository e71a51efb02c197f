// Test positions of every game, and perfect play as the judge of moves in them.
#include "games/solved_positions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>

#include "games/test_sets.h"
#include "tests/games/games_support.h"
#include "tests/support/message.h"

namespace quern::games {
namespace {

std::vector<std::unique_ptr<Position>> positions_of(const Game& game, size_t set, size_t count) {
  return std::move(test_sets(game, count, 5)[set].positions);
}

// The first legal move of each position, the second, and so on; the last where there are fewer.
std::vector<Action> moves_number(const SolvedPositions& solved, size_t number) {
  std::vector<Action> actions;
  for (const auto& position : solved.positions()) {
    const std::vector<Action> moves = legal(*position);
    actions.push_back(moves[std::min(number, moves.size() - 1)]);
  }
  return actions;
}

// Judges every move of every position, and compares with the results of all moves.
void compare_with_all_results(const std::string& name, size_t set, size_t count) {
  const std::unique_ptr<Game> game = make_game(name);
  const std::unique_ptr<Solver> solver = make_solver(name);
  SolverPool pool(name, 2);
  SolvedPositions solved(positions_of(*game, set, count), pool);
  size_t mistakes = 0;
  for (size_t number = 0; number < game->spec().actions; ++number) {
    const std::vector<Action> chosen = moves_number(solved, number);
    const std::vector<bool> found = solved.mistakes(chosen);
    EXPECT_EQ(solved.mistakes(chosen), found);  // remembered
    for (size_t i = 0; i < solved.size(); ++i) {
      const std::vector<Outcome> outcomes = solver->action_outcomes(*solved.positions()[i]);
      const size_t move = std::min(number, outcomes.size() - 1);
      const Outcome best = *std::ranges::max_element(outcomes);
      ASSERT_EQ(solved.outcome(i), best) << game->position_text(*solved.positions()[i]);
      ASSERT_EQ(found[i], outcomes[move] < best) << game->position_text(*solved.positions()[i]) << " move " << number;
      mistakes += found[i] ? 1 : 0;
    }
  }
  EXPECT_GT(mistakes, solved.size() / 4);
}

TEST(SolvedPositions, JudgesTicTacToe) { compare_with_all_results("tictactoe", 0, 0); }
TEST(SolvedPositions, JudgesTheMiddleOfConnectFour) { compare_with_all_results("connect4", 1, 40); }
TEST(SolvedPositions, JudgesTheEndOfConnectFour) { compare_with_all_results("connect4", 2, 300); }

TEST(SolverPool, CallsEveryTaskOnceAndTellsHowFarItIs) {
  for (const size_t threads : {1u, 3u}) {
    SolverPool pool("tictactoe", threads);
    std::vector<std::atomic<int>> calls(100);
    uint64_t last = 0;
    pool.run(
        calls.size(), [&](Solver&, size_t i) { ++calls[i]; },
        [&](uint64_t done, uint64_t total) {
          EXPECT_GT(done, last);
          EXPECT_LE(done, total);
          last = done;
        });
    EXPECT_TRUE(std::ranges::all_of(calls, [](const auto& count) { return count == 1; }));
    pool.run(0, [](Solver&, size_t) { FAIL(); }, {});
  }
}

TEST(SolverPool, RethrowsWhatATaskThrows) {
  SolverPool pool("tictactoe", 2);
  EXPECT_THROW(pool.run(9,
                        [](Solver&, size_t i) {
                          if (i == 4) throw std::runtime_error("no");
                        },
                        {}),
               std::runtime_error);
}

TEST(TestSets, HaveEveryPositionOfTicTacToe) {
  const std::vector<TestSet> sets = test_sets(*make_game("tictactoe"), 10, 1);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].positions.size(), 4520u);  // of 5,478 that can be reached, 958 end the game
  EXPECT_TRUE(std::ranges::none_of(sets[0].positions, [](const auto& position) { return position->over(); }));
}

TEST(TestSets, HaveTheStagesOfConnectFour) {
  const std::unique_ptr<Game> game = make_game("connect4");
  const std::vector<TestSet> sets = test_sets(*game, 20, 1), again = test_sets(*game, 20, 1),
                             other = test_sets(*game, 20, 2);
  ASSERT_EQ(sets.size(), 3u);
  for (size_t i = 0; i < sets.size(); ++i) {
    ASSERT_EQ(sets[i].positions.size(), 20u);
    EXPECT_EQ(game->position_text(*sets[i].positions[7]), game->position_text(*again[i].positions[7]));
    EXPECT_NE(game->position_text(*sets[i].positions[7]), game->position_text(*other[i].positions[7]));
  }
  EXPECT_GE(sets[0].positions[0]->moves_played(), 8u);
  EXPECT_GE(sets[2].positions[0]->moves_played(), 29u);
}

TEST(TestSets, HaveMatesInOneOfChess) {
  const std::unique_ptr<Game> game = make_game("chess");
  const std::vector<TestSet> sets = test_sets(*game, 100, 1), again = test_sets(*game, 100, 1);
  ASSERT_EQ(sets.size(), 1u);
  ASSERT_EQ(sets[0].positions.size(), 100u);
  std::set<std::string> different;
  size_t black = 0, early = 0, late = 0, one_mate = 0;
  for (size_t i = 0; i < sets[0].positions.size(); ++i) {
    const Position& position = *sets[0].positions[i];
    EXPECT_EQ(game->position_text(position), game->position_text(*again[0].positions[i]));
    different.insert(game->draw(position) + std::to_string(position.player()));
    size_t mates = 0;
    for (const Action action : legal(position)) {
      const auto next = position.clone();
      next->play(action);
      mates += next->over() && next->outcome() == Outcome::kLoss ? 1 : 0;
    }
    EXPECT_GE(mates, 1u);
    one_mate += mates == 1 ? 1 : 0;
    black += position.player() == 1 ? 1 : 0;
    early += position.moves_played() < 80 ? 1 : 0;
    late += position.moves_played() >= 150 ? 1 : 0;
  }
  EXPECT_EQ(different.size(), 100u);
  EXPECT_TRUE(black >= 30 && black <= 70) << black;
  EXPECT_GE(one_mate, 50u);
  EXPECT_GE(early, 10u);
  EXPECT_GE(late, 10u);
}

// In a position with a mate in one, exactly the moves that do not mate are mistakes.
TEST(SolvedPositions, JudgesMatesInOne) {
  const std::unique_ptr<Game> game = make_game("chess");
  SolverPool pool("chess", 2);
  SolvedPositions solved(positions_of(*game, 0, 40), pool);
  size_t mates = 0;
  for (size_t number = 0; number < 40; ++number) {
    const std::vector<Action> chosen = moves_number(solved, number);
    const std::vector<bool> found = solved.mistakes(chosen);
    for (size_t i = 0; i < solved.size(); ++i) {
      EXPECT_EQ(solved.outcome(i), Outcome::kWin);
      const auto next = solved.positions()[i]->clone();
      next->play(chosen[i]);
      ASSERT_EQ(found[i], !next->over() || next->outcome() != Outcome::kLoss);
      mates += found[i] ? 0 : 1;
    }
  }
  EXPECT_GE(mates, 40u);
}

}  // namespace
}  // namespace quern::games
