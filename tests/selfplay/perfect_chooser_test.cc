// Perfect play, against the results of all moves.
#include "selfplay/perfect_chooser.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "games/test_sets.h"
#include "selfplay/arena.h"
#include "support/support.h"

namespace quern::selfplay {
namespace {

RandomWords words_of(uint32_t move) { return RandomWords(move_stream(Purpose::kMatch, 1, 0, move)); }

void compare_with_all_moves(const char* name, size_t set, size_t count) {
  const std::unique_ptr<games::Game> game = games::make_game(name);
  const std::unique_ptr<games::Solver> solver = games::make_solver(name);
  const std::unique_ptr<MoveChooser> chooser = perfect_player(*game).make_chooser();
  std::vector<games::Action> legal;
  uint32_t number = 0;
  const std::vector<games::TestSet> sets = games::test_sets(*game, count, 1);
  for (const auto& position : sets[set].positions) {
    position->legal_actions(legal);
    const std::vector<games::Outcome> outcomes = solver->action_outcomes(*position);
    RandomWords words = words_of(number++);
    const games::Action action = chooser->choose(*position, legal, words);
    const auto at = static_cast<size_t>(std::ranges::find(legal, action) - legal.begin());
    ASSERT_EQ(outcomes.at(at), *std::ranges::max_element(outcomes)) << game->position_text(*position);
  }
}

TEST(PerfectChooser, MakesNoMistakeInTicTacToe) { compare_with_all_moves("tictactoe", 0, 0); }
TEST(PerfectChooser, MakesNoMistakeInConnectFour) { compare_with_all_moves("connect4", 1, 60); }

// After a corner, only the centre holds the draw; on an empty board every square does.
TEST(PerfectChooser, ChoosesAmongEquallyGoodMoves) {
  const std::unique_ptr<games::Game> game = games::make_game("tictactoe");
  const std::unique_ptr<MoveChooser> chooser = perfect_player(*game).make_chooser();
  const auto choices = [&](std::string_view moves) {
    const std::unique_ptr<games::Position> position = game->parse_position(moves);
    std::vector<games::Action> legal;
    position->legal_actions(legal);
    std::map<games::Action, int> counts;
    for (uint32_t i = 0; i < 900; ++i) {
      RandomWords words = words_of(i);
      ++counts[chooser->choose(*position, legal, words)];
    }
    return counts;
  };
  EXPECT_EQ(choices("1"), (std::map<games::Action, int>{{4, 900}}));
  const std::map<games::Action, int> first = choices("");
  EXPECT_EQ(first.size(), 9u);
  for (const auto& [action, count] : first) EXPECT_NEAR(count, 100, 40) << action;
}

TEST(PerfectChooser, PlaysAMatchThatDoesNotDependOnThreads) {
  const std::unique_ptr<games::Game> game = games::make_game("tictactoe");
  const MatchPlayer random = {.make_chooser = [] { return std::make_unique<RandomChooser>(); }};
  const MatchSettings settings = {.openings = 100, .opening_moves = 0};
  const MatchSides sides = play_match_sides(*game, perfect_player(*game), random, settings);
  EXPECT_EQ(sides.total().losses, 0u);
  EXPECT_GT(sides.total().draws, 0u);
  EXPECT_GT(sides.began.wins, 50u);
  MatchSettings three = settings;
  three.threads = 3;
  EXPECT_EQ(play_match_sides(*game, perfect_player(*game), random, three), sides);
}

TEST(PerfectChooser, NeedsAGameWithASolver) { EXPECT_THROW(perfect_player(*games::make_game("chess")), Error); }

}  // namespace
}  // namespace quern::selfplay
