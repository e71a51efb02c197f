// Counts the ways to make moves, by which move generators are compared.
#pragma once

#include <cstdint>

#include "games/chess_moves.h"

namespace quern::games::chess {

inline uint64_t perft(const Board& board, unsigned depth) {
  if (depth == 0) return 1;
  const MoveList moves = legal_moves(board);
  if (depth == 1) return moves.size();
  uint64_t count = 0;
  for (const Move move : moves) {
    Board next = board;
    next.play(move);
    count += perft(next, depth - 1);
  }
  return count;
}

}  // namespace quern::games::chess
