#include "games/solved_positions.h"

#include <algorithm>

namespace quern::games {
namespace {

// Of a position with this result. No move of a lost position is a mistake.
bool is_mistake(Solver& solver, const Position& position, Outcome best, Action action) {
  if (best == Outcome::kLoss) return false;
  const std::unique_ptr<Position> next = position.clone();
  next->play(action);
  return solver.reaches(*next, best == Outcome::kWin ? Outcome::kDraw : Outcome::kWin);
}

}  // namespace

SolvedPositions::SolvedPositions(std::vector<std::unique_ptr<Position>> positions, SolverPool& solvers,
                                 const SolverProgress& progress)
    : positions_(std::move(positions)), solvers_(solvers), outcomes_(positions_.size()), judged_(positions_.size()) {
  solvers_.run(
      size(), [this](Solver& solver, size_t i) { outcomes_[i] = solver.outcome(*positions_[i]); }, progress);
}

const SolvedPositions::Judged* SolvedPositions::find(size_t i, Action action) const {
  const auto found = std::ranges::find(judged_[i], action, &Judged::action);
  return found == judged_[i].end() ? nullptr : &*found;
}

std::vector<bool> SolvedPositions::mistakes(std::span<const Action> chosen, const SolverProgress& progress) {
  std::vector<size_t> unknown;
  for (size_t i = 0; i < size(); ++i) {
    if (find(i, chosen[i]) == nullptr) unknown.push_back(i);
  }
  solvers_.run(
      unknown.size(),
      [&](Solver& solver, size_t k) {
        const size_t i = unknown[k];
        judged_[i].push_back({chosen[i], is_mistake(solver, *positions_[i], outcomes_[i], chosen[i])});
      },
      progress);
  std::vector<bool> result;
  for (size_t i = 0; i < size(); ++i) result.push_back(find(i, chosen[i])->mistake);
  return result;
}

}  // namespace quern::games
