#include "games/chess.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "games/chess_actions.h"
#include "games/chess_fen.h"
#include "games/chess_moves.h"
#include "games/chess_position.h"
#include "tests/games/games_support.h"
#include "tests/support/message.h"

namespace quern::games {
namespace {

class ChessTest : public testing::Test {
 protected:
  std::unique_ptr<Game> game_ = make_chess();

  void play(Position& position, const std::string& moves) const {
    std::istringstream words(moves);
    for (std::string word; words >> word;) position.play(game_->parse_action(position, word));
  }
  std::unique_ptr<Position> after(const std::string& moves) const {
    auto position = game_->start();
    play(*position, moves);
    return position;
  }
  std::string fen_after(const std::string& moves) const { return game_->position_text(*after(moves)); }
  bool allows(const Position& position, std::string_view move) const {
    return test::message_of([&] { game_->parse_action(position, move); }) == "no error";
  }
  bool allows(std::string_view fen, std::string_view move) const { return allows(*game_->parse_position(fen), move); }
  Outcome outcome(std::string_view fen) const {
    const auto position = game_->parse_position(fen);
    EXPECT_TRUE(position->over()) << fen;
    return position->outcome();
  }
  bool over(std::string_view fen) const { return game_->parse_position(fen)->over(); }
};

TEST_F(ChessTest, FenFollowsAGame) {
  EXPECT_EQ(fen_after(""), chess::kStartFen);
  // Nothing can capture on e3, so it does not appear.
  EXPECT_EQ(fen_after("e2e4"), "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
  EXPECT_EQ(fen_after("e2e4 a7a6 e4e5 d7d5"), "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3");
  EXPECT_EQ(fen_after("e2e4 a7a6 e4e5 d7d5 e5d6"), "rnbqkbnr/1pp1pppp/p2P4/8/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 3");
  EXPECT_EQ(fen_after("e2e4 e7e5 g1f3 b8c6 f1c4 g8f6 e1g1 h8g8"),
            "r1bqkbr1/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQ1RK1 w q - 6 5");
}

TEST_F(ChessTest, CastlingNeedsAFreeAndSafeWay) {
  const char* free = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
  EXPECT_TRUE(allows(free, "e1g1") && allows(free, "e1c1"));
  EXPECT_FALSE(allows("r3k2r/8/8/8/8/8/8/R3K2R w kq - 0 1", "e1g1"));
  EXPECT_FALSE(allows("4k3/8/8/8/4r3/8/8/R3K2R w KQ - 0 1", "e1g1"));  // in check
  EXPECT_FALSE(allows("4k3/8/8/8/5r2/8/8/R3K2R w KQ - 0 1", "e1g1"));  // through check
  EXPECT_TRUE(allows("4k3/8/8/8/5r2/8/8/R3K2R w KQ - 0 1", "e1c1"));
  EXPECT_FALSE(allows("4k3/8/8/8/6r1/8/8/R3K2R w KQ - 0 1", "e1g1"));  // into check
  EXPECT_TRUE(allows("4k3/8/8/8/1r6/8/8/R3K2R w KQ - 0 1", "e1c1"));   // only the rook passes b1
  EXPECT_FALSE(allows("4k3/8/8/8/8/8/8/RN2K2R w KQ - 0 1", "e1c1"));
}

TEST_F(ChessTest, ATakenRookCannotCastle) {
  const auto position = game_->parse_position("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
  play(*position, "a1a8");
  EXPECT_EQ(game_->position_text(*position), "R3k2r/8/8/8/8/8/8/4K2R b Kk - 0 1");
}

TEST_F(ChessTest, EnPassantMustNotExposeTheKing) {
  EXPECT_TRUE(allows("4k3/8/8/K2pP3/8/8/8/8 w - d6 0 2", "e5d6"));
  EXPECT_FALSE(allows("4k3/8/8/K2pP2r/8/8/8/8 w - d6 0 2", "e5d6"));  // both pawns leave the rank
  EXPECT_FALSE(allows("4k3/8/8/K2pP3/8/8/8/8 w - - 0 2", "e5d6"));    // the right lasts for one move
  EXPECT_EQ(game_->position_text(*game_->parse_position("4k3/8/8/K2pP2r/8/8/8/8 w - d6 0 2")),
            "4k3/8/8/K2pP2r/8/8/8/8 w - - 0 2");
  // The pawn that gives check may be taken.
  EXPECT_TRUE(allows("8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1", "e4d3"));
}

TEST_F(ChessTest, CheckmateLosesAndStalemateDraws) {
  const auto mated = after("f2f3 e7e5 g2g4 d8h4");
  EXPECT_TRUE(mated->over());
  EXPECT_EQ(mated->outcome(), Outcome::kLoss);
  EXPECT_EQ(outcome("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), Outcome::kDraw);
}

TEST_F(ChessTest, InsufficientMaterialDraws) {
  for (const char* drawn : {"8/8/4k3/8/8/3K4/8/8 w - - 0 1", "8/8/4k3/8/8/3KN3/8/8 w - - 0 1",
                            "8/8/4kb2/8/8/3K4/8/8 w - - 0 1", "8/8/4kb2/8/8/3KB3/8/8 w - - 0 1"}) {
    EXPECT_EQ(outcome(drawn), Outcome::kDraw) << drawn;
  }
  for (const char* open :
       {"8/8/4k3/8/8/3KNN2/8/8 w - - 0 1", "8/8/4kn2/8/8/3KB3/8/8 w - - 0 1", "8/8/4kb2/8/8/3K1B2/8/8 w - - 0 1",
        "8/8/4k3/8/8/3KP3/8/8 w - - 0 1", "8/8/3k4/8/8/3K1R2/8/8 w - - 0 1", "8/8/1k6/8/8/3K2Q1/8/8 w - - 0 1"}) {
    EXPECT_FALSE(over(open)) << open;
  }
}

TEST_F(ChessTest, ThirdOccurrenceDraws) {
  const auto position = after("g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1");
  EXPECT_FALSE(position->over());
  play(*position, "f6g8");
  EXPECT_TRUE(position->over());
  EXPECT_EQ(position->outcome(), Outcome::kDraw);
}

TEST_F(ChessTest, PositionsWithOtherRightsAreNotRepetitions) {
  // After the first round White can no longer castle kingside: the third occurrence is one round later.
  const auto position = game_->parse_position("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1");
  play(*position, "h1h2 e8e7 h2h1 e7e8 h1h2 e8e7 h2h1 e7e8");
  EXPECT_FALSE(position->over());
  play(*position, "h1h2");
  EXPECT_TRUE(position->over());
}

TEST_F(ChessTest, FiftyMovesDrawUnlessTheLastMates) {
  const auto position = game_->parse_position("7k/8/6K1/8/8/8/8/R7 w - - 98 80");
  EXPECT_FALSE(position->over());
  play(*position, "a1b1");
  EXPECT_FALSE(position->over());
  play(*position, "h8g8");
  EXPECT_EQ(position->outcome(), Outcome::kDraw);
  EXPECT_TRUE(position->over());
  const auto mate = game_->parse_position("7k/8/6K1/8/8/8/8/R7 w - - 99 80");
  play(*mate, "a1a8");
  EXPECT_TRUE(mate->over());
  EXPECT_EQ(mate->outcome(), Outcome::kLoss);
}

TEST_F(ChessTest, EndsAfter512Moves) {
  size_t longest = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    visit_random_game(*game_, seed, [&](const Position& position) {
      longest = std::max(longest, position.moves_played());
      ASSERT_TRUE(position.over() || position.moves_played() < chess::kMaxGame);
    });
  }
  EXPECT_EQ(longest, chess::kMaxGame);
}

// Compares result_after() with the default, which makes the move on a copy. Counts the ends by what they are.
struct Ends {
  size_t mates = 0, stalemates = 0, other_draws = 0;
};

void compare_ends(const Position& position, Ends& ends) {
  for (const Action action : legal(position)) {
    const std::optional<Outcome> result = position.result_after(action);
    ASSERT_EQ(result, position.Position::result_after(action));
    if (!result) continue;
    chess::Board after = chess_board(position);
    after.play(chess::move_of(action, after));
    const bool stuck = chess::legal_moves(after).empty();
    ++(*result == Outcome::kWin ? ends.mates : stuck ? ends.stalemates : ends.other_draws);
  }
}

TEST_F(ChessTest, KnowsWhichMovesEndEndgames) {
  Ends ends;
  std::mt19937 generator(1);
  for (const char* fen :
       {"8/8/8/8/8/2k5/1q6/K7 w - - 0 1", "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1", "8/8/8/3k4/8/8/4R3/4K3 w - - 90 90",
        "8/P6k/8/8/8/8/7p/K7 w - - 0 1", "8/2k2P2/8/8/8/8/2K2p2/8 b - - 0 1", "8/8/1n6/2k5/8/5KB1/7p/8 w - - 60 90",
        "k7/2Q5/8/8/8/8/8/K7 w - - 0 1", "8/8/8/8/6pp/6pk/6p1/6K1 b - - 0 1", "8/8/p7/p1k5/P1p5/P1P5/2K5/8 w - - 0 1",
        "8/3k4/8/2pP4/8/3K4/8/8 w - c6 0 2", "b3k3/8/8/8/8/8/8/B3K3 w - - 0 1", "4k3/8/8/8/8/8/8/R3K2R w KQ - 95 90"}) {
    for (unsigned game = 0; game < 40; ++game) {
      const auto position = game_->parse_position(fen);
      while (!position->over()) {
        compare_ends(*position, ends);
        position->play(random_action(*position, generator));
      }
    }
  }
  EXPECT_GT(ends.mates, 100u);
  EXPECT_GT(ends.stalemates, 200u);
  EXPECT_GT(ends.other_draws, 1000u);
}

// Pieces move to and fro, so that positions occur again; some of them had other rights the first time.
TEST_F(ChessTest, KnowsWhichMovesRepeatPositions) {
  Ends ends;
  std::mt19937 generator(2);
  for (const char* fen :
       {chess::kStartFen.data(), "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "4k3/8/8/2pP4/8/8/8/4K3 w - c6 0 2"}) {
    for (unsigned game = 0; game < 30; ++game) {
      const auto position = game_->parse_position(fen);
      for (std::array<std::string, 2> last; !position->over();) {  // the last move of each player
        compare_ends(*position, ends);
        std::string& own = last.at(static_cast<size_t>(position->player()));
        const std::string back = own.empty() ? own : own.substr(2, 2) + own.substr(0, 2);
        const bool returns = generator() % 4 != 0 && allows(*position, back);
        const Action action = returns ? game_->parse_action(*position, back) : random_action(*position, generator);
        own = game_->action_text(*position, action);
        position->play(action);
      }
    }
  }
  EXPECT_GT(ends.other_draws, 50u);
}

TEST_F(ChessTest, KnowsThatMove512Ends) {
  Ends ends;
  for (unsigned seed = 0; seed < 200; ++seed) {
    visit_random_game(*game_, seed, [&](const Position& position) {
      if (position.moves_played() >= chess::kMaxGame - 2) compare_ends(position, ends);
    });
  }
  EXPECT_GT(ends.other_draws, 20u);
}

float plane_at(const std::vector<float>& values, size_t plane, size_t row, size_t column) {
  return values[plane * 64 + row * 8 + column];
}

TEST_F(ChessTest, PlanesAreSeenByThePlayerToMove) {
  const auto position = after("e2e4 a7a6 e4e5 d7d5");
  const std::vector<float> white = planes(*game_, *position);
  EXPECT_EQ(plane_at(white, 0, 3, 4), 1);   // own pawn on e5: row 0 is rank 8
  EXPECT_EQ(plane_at(white, 6, 3, 3), 1);   // the opponent's on d5
  EXPECT_EQ(plane_at(white, 5, 7, 4), 1);   // own king on e1
  EXPECT_EQ(plane_at(white, 13, 0, 0), 0);  // White
  EXPECT_EQ(plane_at(white, 14, 7, 0) + plane_at(white, 14, 0, 7), 2);
  EXPECT_EQ(plane_at(white, 15, 2, 3), 1);  // d6
  EXPECT_EQ(plane_at(white, 16, 0, 0), 0);
  EXPECT_EQ(plane_at(white, 17, 0, 0), 4.0f / 512);
  EXPECT_EQ(plane_at(white, 18 + 6, 1, 3), 1);           // one move ago, the opponent's pawn on d7
  EXPECT_EQ(plane_at(white, 18 + 3 * 13, 6, 4), 1);      // four moves ago, the own pawn on e2
  EXPECT_EQ(plane_at(white, 18 + 4 * 13 + 5, 7, 4), 0);  // no fifth
  play(*position, "g1f3");
  const std::vector<float> black = planes(*game_, *position);
  EXPECT_EQ(plane_at(black, 0, 4, 3), 1);   // own pawn on d5: row 0 is rank 1
  EXPECT_EQ(plane_at(black, 6, 4, 4), 1);   // the opponent's on e5
  EXPECT_EQ(plane_at(black, 13, 5, 5), 1);  // Black
  EXPECT_EQ(plane_at(black, 16, 5, 5), 0.01f);
  EXPECT_EQ(plane_at(black, 18, 4, 3), 1);  // before the last move, seen by Black too
}

TEST_F(ChessTest, PlanesShowRepetitions) {
  const auto position = after("g1f3 g8f6 f3g1 f6g8");
  EXPECT_EQ(plane_at(planes(*game_, *position), 12, 3, 3), 1);
  play(*position, "g1f3");
  EXPECT_EQ(plane_at(planes(*game_, *position), 12, 3, 3), 1);
  EXPECT_EQ(plane_at(planes(*game_, *position), 18 + 12, 3, 3), 1);
  play(*position, "d7d5");
  EXPECT_EQ(plane_at(planes(*game_, *position), 12, 3, 3), 0);
  EXPECT_EQ(plane_at(planes(*game_, *position), 18 + 12, 3, 3), 1);
  EXPECT_EQ(plane_at(planes(*game_, *position), 18 + 5 * 13 + 12, 3, 3), 0);
}

TEST_F(ChessTest, ActionsAreSeenByThePlayerToMove) {
  const auto start = game_->start();
  EXPECT_EQ(game_->parse_action(*start, "e2e4"), (6 * 8 + 4) * 73 + 1);
  EXPECT_EQ(game_->parse_action(*start, "b1c3"), (7 * 8 + 1) * 73 + 56);
  play(*start, "e2e4");
  EXPECT_EQ(game_->parse_action(*start, "e7e5"), (6 * 8 + 4) * 73 + 1);
  const auto promotes = game_->parse_position("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1");
  const Action base = (1 * 8 + 0) * 73;
  EXPECT_EQ(game_->parse_action(*promotes, "a7a8q"), base + 0);
  EXPECT_EQ(game_->parse_action(*promotes, "a7b8q"), base + 7);
  EXPECT_EQ(game_->parse_action(*promotes, "a7a8n"), base + 65);
  EXPECT_EQ(game_->parse_action(*promotes, "a7b8r"), base + 72);
  EXPECT_FALSE(allows(*promotes, "a7a8"));
  EXPECT_FALSE(allows(*promotes, "a7a8k"));
}

// The hash covers what the planes show: eight moves after a transposition nothing of the way is left.
TEST_F(ChessTest, TranspositionsHaveOneHashOnceTheirHistoryIsForgotten) {
  const auto one = after("g1f3 g8f6 b1c3 b8c6"), other = after("b1c3 b8c6 g1f3 g8f6");
  EXPECT_EQ(chess_board(*one).key(), chess_board(*other).key());
  EXPECT_NE(one->hash(), other->hash());
  const char* quiet = "e2e3 e7e6 f1e2 f8e7 e1g1 e8g8 a2a3 a7a6";
  play(*one, quiet);
  play(*other, quiet);
  EXPECT_EQ(one->hash(), other->hash());
  EXPECT_EQ(planes(*game_, *one), planes(*game_, *other));
}

TEST_F(ChessTest, WrongMovesAreErrors) {
  EXPECT_EQ(
      test::message_of([&] { game_->parse_action(*game_->parse_position("7k/8/8/8/8/8/8/K6R b - - 0 1"), "h8h7"); }),
      "[chess] move: expected one of the 2 legal moves such as h8g7, found 'h8h7'");
  EXPECT_EQ(
      test::message_of([&] { game_->parse_action(*game_->parse_position("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), "h8h7"); }),
      "[chess] move: expected none, because the game is over, found 'h8h7'");
}

TEST_F(ChessTest, DrawsTheBoard) {
  EXPECT_EQ(game_->draw(*after("e2e4")),
            "8 r n b q k b n r\n7 p p p p p p p p\n6 . . . . . . . .\n5 . . . . . . . .\n4 . . . . P . . .\n"
            "3 . . . . . . . .\n2 P P P P . P P P\n1 R N B Q K B N R\n  a b c d e f g h\n");
}

TEST_F(ChessTest, APositionTakesLessThan2KB) { EXPECT_LE(sizeof(chess::ChessPosition), 1'600u); }

}  // namespace
}  // namespace quern::games
