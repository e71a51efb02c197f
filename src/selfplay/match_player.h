// Who plays a match.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "games/game.h"
#include "selfplay/model.h"
#include "selfplay/random_words.h"
#include "selfplay/settings.h"

namespace quern::selfplay {

// A player without a network: random, greedy, perfect. One thread.
class MoveChooser {
 public:
  virtual ~MoveChooser() = default;

  // One of the legal moves, which are in ascending order. Its random numbers, if any, must be those of `words`.
  virtual games::Action choose(const games::Position& position, std::span<const games::Action> legal,
                               RandomWords& words) = 0;
};

// Every legal move with the same probability.
class RandomChooser : public MoveChooser {
 public:
  games::Action choose(const games::Position& position, std::span<const games::Action> legal,
                       RandomWords& words) override;
};

// Either a model, or choosers: one for each thread of the match.
struct MatchPlayer {
  std::shared_ptr<const Model> model = nullptr;
  // Of the model: it plays the most visited move, without noise. 0 simulations: the move with the highest prior.
  uint32_t simulations = 100;
  SearchSettings search = {};

  std::function<std::unique_ptr<MoveChooser>()> make_chooser = nullptr;
};

}  // namespace quern::selfplay
