// Chess positions with a mate in one move, to judge a player by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "games/game.h"
#include "games/solver.h"

namespace quern::games {

// `count` positions of random games, with the history that led to them: in each, a move mates. No two have the same
// pieces on the same squares and the same player to move, and no two are of one game, which is left at its first mate
// in one after a number of moves drawn from 0 to 119. A pure function of its arguments.
std::vector<std::unique_ptr<Position>> mate_in_one_positions(size_t count, uint64_t seed);

// Sees one move ahead: a position where a move mates is won, and any other one is taken to be drawn. So in a position
// with a mate in one, every move that does not mate is a mistake.
class MateInOneSolver final : public Solver {
 public:
  Outcome outcome(const Position& position) override;
};

}  // namespace quern::games
