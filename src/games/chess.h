// Chess, with the rules of FIDE. The game is drawn at once by threefold repetition, by fifty moves of each player
// without a capture or pawn move (unless the last of them mates), by insufficient material, and after 512 moves of
// either player.
//
// Moves are written as e2e4, e1g1 (castling) and e7e8q, positions as FEN. A position that was read knows nothing of the
// moves before it: moves_played() is 0, no position has occurred before, and the planes of history are 0.
// chess_actions.h describes the actions. There are no symmetries, because of castling.
//
// Planes are seen by the player to move: row 0 is the far side, and for Black the board is flipped vertically. Values
// are 0 or 1 unless a plane says otherwise.
//
//   0 ..  5    pawns, knights, bishops, rooks, queens, king of the player to move
//   6 .. 11    the same of the opponent
//  12          everywhere 1 if this position has occurred before
//  13          everywhere 1 if Black is to move
//  14          rooks with which their side may still castle
//  15          the square that a pawn has just passed, if it can be captured there
//  16          everywhere the moves of both since the last capture or pawn move, / 100
//  17          everywhere moves_played() / 512
//  18 .. 30    the position before the last move: 12 planes as 0 to 11 (of the player to move now, then of the
//              opponent), and 1 everywhere if it had occurred before
//  31 .. 121   seven more positions in the same way, back in time; 0 if there are none
#pragma once

#include <memory>

#include "games/chess_board.h"
#include "games/game.h"

namespace quern::games {

std::unique_ptr<Game> make_chess();

// The board of a position of this game.
const chess::Board& chess_board(const Position& position);

}  // namespace quern::games
