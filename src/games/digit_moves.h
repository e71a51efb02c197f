// Games whose moves are written as a digit: action 0 is 1, action 1 is 2, and so on. A position is written as the moves
// that lead to it from the start.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "games/game.h"

namespace quern::games {

std::string digit_of(Action action);

// The legal action that `text` is the digit of. Error for anything else.
Action parse_digit(const Game& game, const Position& position, std::string_view text);

// The position after the moves of `digits`. Error for a move that is not legal, and for moves after the end of the
// game.
std::unique_ptr<Position> play_digits(const Game& game, std::string_view digits);

}  // namespace quern::games
