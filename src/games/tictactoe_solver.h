// Perfect tic-tac-toe.
#pragma once

#include <unordered_map>

#include "games/solver.h"

namespace quern::games {

// Tries all moves: 5,478 positions, once each.
class TicTacToeSolver final : public Solver {
 public:
  Outcome outcome(const Position& position) override;

 private:
  std::unordered_map<uint64_t, Outcome> known_;  // by hash
};

}  // namespace quern::games
