// Positions to judge a player by, of any game that has a solver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "games/game.h"

namespace quern::games {

struct TestSet {
  std::string name;                                  // begin, middle, end; all
  std::vector<std::unique_ptr<Position>> positions;  // none of them the end of a game
};

// Connect Four: `count` positions of each stage (games/connect4_positions.h), as the seed says. Tic-tac-toe: one set of
// all 4,520 positions that a game can reach, whatever `count` and `seed`. Error for a game without a solver.
std::vector<TestSet> test_sets(const Game& game, size_t count, uint64_t seed);

}  // namespace quern::games
