// Random games, for tests.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "games/game.h"

namespace quern::games {

inline std::vector<Action> legal(const Position& position) {
  std::vector<Action> actions;
  position.legal_actions(actions);
  return actions;
}

inline std::vector<float> planes(const Game& game, const Position& position) {
  std::vector<float> result(game.spec().planes * game.spec().squares(), -1.0f);
  position.write_planes(result);
  return result;
}

inline Action random_action(const Position& position, std::mt19937& generator) {
  const std::vector<Action> actions = legal(position);
  return actions[generator() % actions.size()];
}

// Plays a random game to its end and calls `visit` with every position of it, also the first and the last.
inline void visit_random_game(const Game& game, unsigned seed, const std::function<void(const Position&)>& visit) {
  std::mt19937 generator(seed);
  const std::unique_ptr<Position> position = game.start();
  visit(*position);
  while (!position->over()) {
    position->play(random_action(*position, generator));
    visit(*position);
  }
}

}  // namespace quern::games
