#include "selfplay/perfect_chooser.h"

#include <utility>

namespace quern::selfplay {

bool KnownResults::find(uint64_t hash, games::Outcome& outcome) const {
  const std::lock_guard lock(mutex_);
  const auto found = results_.find(hash);
  if (found == results_.end()) return false;
  outcome = found->second;
  return true;
}

void KnownResults::put(uint64_t hash, games::Outcome outcome) {
  const std::lock_guard lock(mutex_);
  results_.emplace(hash, outcome);
}

games::Outcome PerfectChooser::outcome(const games::Position& position) {
  games::Outcome outcome;
  if (known_->find(position.hash(), outcome)) return outcome;
  outcome = solver_->outcome(position);
  known_->put(position.hash(), outcome);
  return outcome;
}

// The first move, in a random order, that keeps the result: fewer positions to solve than for a list of all such moves.
games::Action PerfectChooser::choose(const games::Position& position, std::span<const games::Action> legal,
                                     RandomWords& words) {
  const games::Outcome best = outcome(position);
  shuffled_.assign(legal.begin(), legal.end());
  for (size_t left = shuffled_.size(); left > 1; --left) {
    std::swap(shuffled_[left - 1], shuffled_[words.below(static_cast<uint32_t>(left))]);
    const games::Action action = shuffled_[left - 1];
    if (best == games::Outcome::kLoss) return action;
    const std::unique_ptr<games::Position> next = position.clone();
    next->play(action);
    if (games::reversed(outcome(*next)) == best) return action;
  }
  return shuffled_[0];  // the only one left
}

MatchPlayer perfect_player(const games::Game& game) {
  games::make_solver(game.spec().name);  // the error of a game without one
  const auto known = std::make_shared<KnownResults>();
  return {.make_chooser = [name = game.spec().name, known] {
    return std::make_unique<PerfectChooser>(games::make_solver(name), known);
  }};
}

}  // namespace quern::selfplay
