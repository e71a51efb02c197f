// Positions whose results are known: perfect play judges the moves that are chosen in them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "games/solver_pool.h"

namespace quern::games {

// Judging a move takes about as long as solving its position, so moves are judged when someone chooses them, and once:
// the checkpoints of a run mostly choose the same ones.
class SolvedPositions {
 public:
  // Solves the positions, none of which may be the end of a game. The pool must outlive this object.
  SolvedPositions(std::vector<std::unique_ptr<Position>> positions, SolverPool& solvers,
                  const SolverProgress& progress = {});

  std::span<const std::unique_ptr<Position>> positions() const { return positions_; }
  size_t size() const { return positions_.size(); }

  // The result for the player to move if both play perfectly.
  Outcome outcome(size_t i) const { return outcomes_[i]; }

  // For a legal move of each position, whether it is a mistake: whether its result is worse than that of the best
  // move. How soon a game is won or lost does not matter.
  std::vector<bool> mistakes(std::span<const Action> chosen, const SolverProgress& progress = {});

 private:
  struct Judged {
    Action action;
    bool mistake;
  };

  const Judged* find(size_t i, Action action) const;

  std::vector<std::unique_ptr<Position>> positions_;
  SolverPool& solvers_;
  std::vector<Outcome> outcomes_;
  std::vector<std::vector<Judged>> judged_;
};

}  // namespace quern::games
