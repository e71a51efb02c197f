#include "games/tictactoe_solver.h"

#include <algorithm>

namespace quern::games {

Outcome TicTacToeSolver::outcome(const Position& position) {
  if (position.over()) return position.outcome();
  if (const auto found = known_.find(position.hash()); found != known_.end()) return found->second;
  const Outcome best = std::ranges::max(action_outcomes(position));
  known_.emplace(position.hash(), best);
  return best;
}

}  // namespace quern::games
