// Positions to judge a player by. make_judge() of solver.h judges the moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "games/game.h"

namespace quern::games {

struct TestSet {
  std::string name;                                  // begin, middle, end; all; mate in 1
  std::vector<std::unique_ptr<Position>> positions;  // none of them the end of a game
};

// Connect Four: `count` positions of each stage (games/connect4_positions.h), as the seed says. Tic-tac-toe: one set of
// all 4,520 positions that a game can reach, whatever `count` and `seed`. Chess: one set of `count` positions with a
// mate in one (games/chess_mates.h).
std::vector<TestSet> test_sets(const Game& game, size_t count, uint64_t seed);

}  // namespace quern::games
