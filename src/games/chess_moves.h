// The legal moves of a chess board.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <string>

#include "games/chess_board.h"

namespace quern::games::chess {

// No board that read_fen() accepts has more moves: with all pawns promoted, 9 queens of 27 moves, 2 rooks of 14, 2
// bishops of 13, 2 knights of 8 and a king of 8 and 2 castlings. (A pawn has at most 12.)
inline constexpr size_t kMaxMoves = 9 * 27 + 2 * 14 + 2 * 13 + 2 * 8 + 8 + 2;

// On the stack, because search lists moves a million times a second.
class MoveList {
 public:
  void push(Move move) {
    assert(count_ < kMaxMoves);
    moves_[count_++] = move;
  }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const Move* begin() const { return moves_.data(); }
  const Move* end() const { return moves_.data() + count_; }

 private:
  std::array<Move, kMaxMoves> moves_;
  size_t count_ = 0;
};

// All legal moves, in no particular order. Repetitions and the fifty-move rule do not matter here.
MoveList legal_moves(const Board& board);

// Whether there is one: usually found without listing any.
bool has_legal_move(const Board& board);

// Neither side can ever mate: no pawn, rook or queen, and at most one other piece besides the kings, or only bishops on
// squares of one colour.
bool insufficient_material(const Placement& placement);

std::string move_text(Move move);  // e2e4, e1g1, e7e8q

}  // namespace quern::games::chess
