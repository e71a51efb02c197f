// Published counts of move sequences (chessprogramming.org/Perft_Results).
#include "tests/games/chess_perft.h"

#include <gtest/gtest.h>

#include <vector>

#include "games/chess_fen.h"

namespace quern::games::chess {
namespace {

struct Counts {
  const char* fen;
  std::vector<uint64_t> by_depth;  // from 1
};

const std::vector<Counts> kCounts = {
    {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", {20, 400, 8'902, 197'281, 4'865'609}},
    {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
     {48, 2'039, 97'862, 4'085'603, 193'690'690}},
    {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {14, 191, 2'812, 43'238, 674'624, 11'030'083}},
    {"r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", {6, 264, 9'467, 422'333, 15'833'292}},
    {"rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", {44, 1'486, 62'379, 2'103'487, 89'941'194}},
    {"r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", {46, 2'079, 89'890, 3'894'594}}};

void expect_counts(uint64_t least, uint64_t most) {
  for (const auto& [fen, by_depth] : kCounts) {
    for (unsigned depth = 1; depth <= by_depth.size(); ++depth) {
      const uint64_t expected = by_depth[depth - 1];
      if (expected < least || expected >= most) continue;
      EXPECT_EQ(perft(read_fen(fen), depth), expected) << fen << " " << depth;
    }
  }
}

TEST(ChessPerft, AgreesWithPublishedCounts) { expect_counts(0, 5'000'000); }

TEST(ChessPerftDeep, AgreesWithPublishedCountsUpTo200Million) { expect_counts(5'000'000, 200'000'000); }

// The same positions with the colours exchanged.
std::string exchanged(const std::string& fen) {
  Board board = read_fen(fen), result;
  for (int square = 0; square < 64; ++square) {
    const Piece piece = board.placement.piece_at(square);
    if (piece != kNoPiece) result.placement.put(opponent(board.placement.color_at(square)), piece, square ^ 56);
  }
  result.turn = opponent(board.turn);
  result.castling = static_cast<uint8_t>(board.castling << 2 & 15) | board.castling >> 2;
  return write_fen(result);
}

TEST(ChessPerft, DoesNotDependOnTheColour) {
  for (const auto& [fen, by_depth] : kCounts) EXPECT_EQ(perft(read_fen(exchanged(fen)), 3), by_depth[2]) << fen;
}

}  // namespace
}  // namespace quern::games::chess
