// Tic-tac-toe: small enough to test search and training on it.
//
// Squares and actions are numbered row by row from the top left; action a puts a mark on square a. Moves are written as
// the digits 1 to 9, positions as the moves that lead to them.
//
//   plane 0  marks of the player to move
//   plane 1  marks of the opponent
#pragma once

#include <memory>

#include "games/game.h"

namespace quern::games {

std::unique_ptr<Game> make_tictactoe();

}  // namespace quern::games
