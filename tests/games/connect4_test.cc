#include "games/connect4.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <unordered_map>

#include "tests/games/games_support.h"
#include "tests/support/message.h"

namespace quern::games {
namespace {

// The rules again, cell by cell.
class SlowBoard {
 public:
  bool play(int column) {
    int row = 0;
    while (row < 6 && cells_[row][column] != 0) ++row;
    if (row == 6) return false;
    cells_[row][column] = player_;
    over_ = wins(row, column) || ++stones_ == 42;
    player_ = 3 - player_;
    return true;
  }
  bool over() const { return over_; }

 private:
  bool wins(int row, int column) const {
    for (const auto [down, right] : {std::array{1, 0}, std::array{0, 1}, std::array{1, 1}, std::array{1, -1}}) {
      if (run(row, column, down, right) + run(row, column, -down, -right) >= 3) return true;
    }
    return false;
  }
  int run(int row, int column, int down, int right) const {
    int length = 0;
    for (row += down, column += right; row >= 0 && row < 6 && column >= 0 && column < 7; row += down, column += right) {
      if (cells_[row][column] != player_) break;
      ++length;
    }
    return length;
  }

  int cells_[6][7] = {};
  int player_ = 1, stones_ = 0;
  bool over_ = false;
};

TEST(Connect4, AgreesWithRulesWrittenCellByCell) {
  const auto game = make_connect4();
  std::mt19937 generator(1);
  size_t drawn = 0;
  for (int round = 0; round < 3'000; ++round) {
    const auto position = game->start();
    SlowBoard slow;
    while (!position->over()) {
      SlowBoard copy = slow;
      std::vector<Action> expected;
      for (int column = 0; column < 7; ++column) {
        if (SlowBoard(copy).play(column)) expected.push_back(static_cast<Action>(column));
      }
      ASSERT_EQ(legal(*position), expected);
      const Action action = random_action(*position, generator);
      position->play(action);
      slow.play(action);
      ASSERT_EQ(position->over(), slow.over()) << game->position_text(*position);
    }
    drawn += position->outcome() == Outcome::kDraw;
  }
  EXPECT_GT(drawn, 0u);
}

// The different boards after a number of moves, by their hash.
struct Reached {
  std::unique_ptr<Position> position;
  size_t sequences = 0;  // of moves that lead to it
};
using Boards = std::unordered_map<uint64_t, Reached>;

Boards after_one_more(const Boards& boards) {
  Boards result;
  for (const auto& [hash, reached] : boards) {
    for (const Action action : legal(*reached.position)) {
      auto next = reached.position->clone();
      next->play(action);
      Reached& place = result[next->hash()];
      place.sequences += reached.sequences;
      place.position = std::move(next);
    }
  }
  return result;
}

// Published counts of different boards after a number of moves, and of the sequences that lead to them.
TEST(Connect4, HasAsManyBoardsAndSequencesAsKnown) {
  const auto game = make_connect4();
  constexpr size_t kBoards[] = {7, 49, 238, 1'120, 4'263, 16'422, 54'859, 184'275, 558'186};
  constexpr size_t kSequences[] = {7, 49, 343, 2'401, 16'807, 117'649, 823'536, 5'673'234, 39'394'572};
  Boards boards;
  boards[game->start()->hash()] = {game->start(), 1};
  for (size_t i = 0; i < std::size(kBoards); ++i) {
    boards = after_one_more(boards);
    EXPECT_EQ(boards.size(), kBoards[i]);
    size_t sequences = 0;
    for (const auto& [hash, reached] : boards) sequences += reached.sequences;
    EXPECT_EQ(sequences, kSequences[i]);
  }
}

TEST(Connect4, PlanesBeginWithTheTopRow) {
  const auto game = make_connect4();
  const auto position = game->parse_position("445");
  std::vector<float> expected(3 * 42, 0.0f);
  expected[4 * 7 + 3] = 1;       // own: the second player's stone, on top of the first
  expected[42 + 5 * 7 + 3] = 1;  // the opponent's, in the lowest row
  expected[42 + 5 * 7 + 4] = 1;
  std::fill(expected.begin() + 84, expected.end(), 1.0f);
  EXPECT_EQ(planes(*game, *position), expected);
  EXPECT_EQ(game->draw(*position).substr(0, 28), "1 2 3 4 5 6 7\n. . . . . . .\n");
  EXPECT_EQ(game->draw(*position).substr(70), ". . . O . . .\n. . . X X . .\n");
}

TEST(Connect4, TranspositionsHaveOneHash) {
  const auto game = make_connect4();
  EXPECT_EQ(game->parse_position("1234")->hash(), game->parse_position("3412")->hash());
  EXPECT_NE(game->parse_position("1234")->hash(), game->parse_position("1243")->hash());
}

TEST(Connect4, WrongTextsAreErrors) {
  const auto game = make_connect4();
  EXPECT_EQ(test::message_of([&] { game->parse_position("44x"); }),
            "[connect4] position '44x': expected one of 1, 2, 3, 4, 5, 6, 7 at place 3, found 'x'");
  EXPECT_EQ(test::message_of([&] { game->parse_position("4444444"); }),
            "[connect4] position '4444444': expected one of 1, 2, 3, 5, 6, 7 at place 7, found '4'");
  EXPECT_EQ(test::message_of([&] { game->parse_position("12121212"); }),
            "[connect4] position '12121212': expected no move, because the game is over at place 8, found '2'");
  EXPECT_EQ(test::message_of([&] { game->parse_action(*game->start(), "8"); }),
            "[connect4] move: expected one of 1, 2, 3, 4, 5, 6, 7, found '8'");
  EXPECT_EQ(test::message_of([&] { game->parse_action(*game->start(), ""); }),
            "[connect4] move: expected one of 1, 2, 3, 4, 5, 6, 7, found ''");
}

}  // namespace
}  // namespace quern::games
