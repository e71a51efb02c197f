// Chess moves as numbers, seen by the player who makes them: for Black, the board is flipped so that rank 8 is the near
// side. An action is 73 * square + plane. `square`, where the move starts, is row * 8 + column; row 0 is the far side.
//
//   plane  0 ..  6  forwards by 1 to 7 squares          a pawn that reaches the last rank becomes a queen
//   plane  7 .. 13  forwards and right
//   plane 14 .. 20  right                               castling kingside is 2 squares right
//   plane 21 .. 27  backwards and right
//   plane 28 .. 34  backwards
//   plane 35 .. 41  backwards and left
//   plane 42 .. 48  left
//   plane 49 .. 55  forwards and left
//   plane 56 .. 63  knight moves, clockwise from 2 forwards and 1 right
//   plane 64 .. 66  promotion to a knight: capturing left, straight on, capturing right
//   plane 67 .. 69  to a bishop
//   plane 70 .. 72  to a rook
//
// The board is flipped, not turned: files are the same for both, so right is towards the h-file.
#pragma once

#include "games/chess_board.h"
#include "games/game.h"

namespace quern::games::chess {

inline constexpr size_t kMovePlanes = 73;
inline constexpr size_t kActions = 64 * kMovePlanes;

// The row-by-row number of a square as `viewer` sees it, and the square of such a number.
constexpr int viewed(int square, Color viewer) { return viewer == kWhite ? square ^ 56 : square; }

// `move` must be legal or at least possible on an empty board.
Action action_of(Move move, Color mover);

// The move of an action that is legal on `board`.
Move move_of(Action action, const Board& board);

}  // namespace quern::games::chess
