#include "games/chess_fen.h"

#include <gtest/gtest.h>

#include "games/chess_moves.h"
#include "games/game.h"
#include "tests/games/games_support.h"
#include "tests/support/message.h"
#include "tests/support/mutation.h"

namespace quern::games::chess {
namespace {

std::string error_of(std::string_view fen) {
  const std::string message = test::message_of([&] { read_fen(fen); });
  const size_t expected = message.find("expected ");
  return expected == std::string::npos ? message : message.substr(expected);
}

TEST(ChessFen, ErrorsSayWhatWasExpectedAndFound) {
  EXPECT_EQ(test::message_of([] { read_fen("8/8 w"); }),
            "[chess] FEN '8/8 w': expected 4 or 6 fields with a space between them, found 2");
  EXPECT_EQ(error_of(""), "expected 4 or 6 fields with a space between them, found 1");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 w - - 0"), "expected 4 or 6 fields with a space between them, found 5");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3  w - - 0 1"), "expected 4 or 6 fields with a space between them, found 7");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/4K3 w - - 0 1"), "expected 8 ranks, found 7");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/8/4K3 w - - 0 1"), "expected 8 ranks, found more");
  EXPECT_EQ(error_of("4k3/8/7/8/8/8/8/4K3 w - - 0 1"), "expected 8 squares on rank 6, found 7");
  EXPECT_EQ(error_of("4k3/8/8p/8/8/8/8/4K3 w - - 0 1"), "expected 8 squares on rank 6, found more");
  EXPECT_EQ(error_of("4k3/8/44/8/8/8/8/4K3 w - - 0 1"),
            "expected no digit after a digit, found '4k3/8/44/8/8/8/8/4K3'");
  EXPECT_EQ(error_of("4k3/8/4x3/8/8/8/8/4K3 w - - 0 1"),
            "expected a piece of PNBRQKpnbrqk or a digit from 1 to 8, found 'x'");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K2P w - - 0 1"), "expected no pawn on ranks 1 and 8, found one");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/8 w - - 0 1"), "expected one king of White, found 0");
  EXPECT_EQ(error_of("4k2k/8/8/8/8/8/8/4K3 w - - 0 1"), "expected one king of Black, found 2");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/QQQQQQQQ/QQ2K3 w - - 0 1"),
            "expected at most 8 pawns and promoted pieces of White, found 9");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 x - - 0 1"), "expected w or b as the player to move, found 'x'");
  EXPECT_EQ(error_of("4k2R/8/8/8/8/8/8/4K3 w - - 0 1"),
            "expected a king that cannot be taken, found White to move and Black in check");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K2R w KX - 0 1"),
            "expected rights to castle, - or letters of KQkq in this order, found 'KX'");
  EXPECT_EQ(error_of("r3k2r/8/8/8/8/8/8/R3K2R w kK - 0 1"),
            "expected rights to castle, - or letters of KQkq in this order, found 'kK'");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K2R w Q - 0 1"),
            "expected a king on e1 and a rook on a1 for the right Q, found others");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 w - e4 0 1"),
            "expected - or a square of rank 6 that a pawn has passed, found 'e4'");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 w - e6 0 1"), "expected a pawn on e5 that has passed e6, found none");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 w - - 101 1"),
            "expected moves since a capture or pawn move, 0 to 100, found '101'");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 w - - 00 1"),
            "expected moves since a capture or pawn move, 0 to 100, found '00'");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 w - - 0 0"), "expected the number of the move, 1 to 9999, found '0'");
}

TEST(ChessFen, CountersMayBeMissing) {
  EXPECT_EQ(write_fen(read_fen("4k3/8/8/8/8/8/8/4K2R w K -")), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
}

const std::vector<std::string> kGood = {std::string(kStartFen),
                                        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
                                        "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3",
                                        "QQQQQQQQ/Q6Q/Q6Q/8/8/4k3/8/K7 b - - 99 400",
                                        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
                                        "1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1"};

// Whatever is accepted is a position that can be played on: legal moves leave no king to be taken.
TEST(ChessFenFuzz, DamagedTextIsAPositionOrAnError) {
  test::Mutator mutator(kGood,
                        {"/", " ", "w", "b", "KQkq", "-", "e3", "d6", "8", "1", "k", "K", "Q", "p", "100", "9999"}, 7);
  size_t accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string text = mutator.next();
    try {
      const Board board = read_fen(text);
      ++accepted;
      ASSERT_EQ(write_fen(read_fen(write_fen(board))), write_fen(board)) << text;
      for (const Move move : legal_moves(board)) {
        Board next = board;
        next.play(move);
        ASSERT_FALSE(next.attackers(next.king(board.turn), next.turn, next.placement.all())) << text << move_text(move);
      }
    } catch (const Error& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("[chess] FEN ")) << error.what();
    }
  }
  EXPECT_GT(accepted, 2'000u);
}

TEST(ChessMoveFuzz, DamagedMovesAreLegalOrErrors) {
  const auto game = make_game("chess");
  test::Mutator mutator({"e2e4", "e7e8q", "e1g1", "a7b8n", "g1f3"}, {"e", "2", "q", "a8", "h1", "O-O"}, 3);
  size_t accepted = 0;
  for (const std::string& fen : kGood) {
    if (fen.starts_with("Q")) continue;
    const auto position = game->parse_position(fen);
    for (int i = 0; i < 10'000; ++i) {
      const std::string text = mutator.next();
      try {
        const Action action = game->parse_action(*position, text);
        ASSERT_EQ(game->action_text(*position, action), text);
        ++accepted;
      } catch (const Error& error) {
        ASSERT_TRUE(std::string_view(error.what()).starts_with("[chess] move: expected ")) << error.what();
      }
    }
  }
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace quern::games::chess
