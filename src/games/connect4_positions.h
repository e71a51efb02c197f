// Positions of Connect Four to judge a player by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "games/connect4_board.h"

namespace quern::games {

// A part of the game, by the number of moves played. Positions with fewer than 8 moves are left out: they take the
// solver the longest, and there are few of them.
enum class Stage : uint8_t { kBegin, kMiddle, kEnd };  // 8 to 14, 15 to 28, 29 to 40

struct Connect4TestPosition {
  std::string moves;  // as the game reads them: 4455
  Connect4Board board;
};

// `count` different boards, none of them a finished game: random moves from the empty board, as many as the stage has.
// A pure function of its arguments.
std::vector<Connect4TestPosition> connect4_test_positions(Stage stage, size_t count, uint64_t seed);

}  // namespace quern::games
