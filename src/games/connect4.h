// Connect Four: 6 rows, 7 columns, four stones in a line win.
//
// Row 0 is the top row, so square c is the top cell of column c; action c drops a stone into column c. Moves are
// written as the digits 1 to 7, positions as the moves that lead to them: 4455.
//
//   plane 0  stones of the player to move
//   plane 1  stones of the opponent
//   plane 2  1 if the player to move is the one who did not begin: who profits from the last cells depends on it
//
// The only symmetry exchanges left and right.
#pragma once

#include <memory>

#include "games/connect4_board.h"
#include "games/game.h"

namespace quern::games {

std::unique_ptr<Game> make_connect4();

// The board of a position of this game.
const Connect4Board& connect4_board(const Position& position);

}  // namespace quern::games
