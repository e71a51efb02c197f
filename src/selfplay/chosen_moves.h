// The moves that a network chooses in given positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "games/game.h"
#include "selfplay/model.h"
#include "selfplay/settings.h"
#include "selfplay/wdl.h"

namespace quern::selfplay {

struct ChosenMove {
  games::Action policy = 0;    // the move with the highest prior: the network alone
  games::Action searched = 0;  // the most visited move of the search
  Wdl value;                   // the network's, for the player to move
};

struct ChoiceSettings {
  uint32_t simulations = 100;
  SearchSettings search = {};
  size_t threads = 1;
  size_t positions_at_once = 128;  // of each thread: the size of a batch
  // Called now and then, by the calling thread.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

// One for each position, none of which may be the end of a game. The searches have no noise and start without a tree,
// so the result is a function of positions, model, simulations and search settings.
std::vector<ChosenMove> choose_moves(const games::GameSpec& spec, const Model& model,
                                     std::span<const std::unique_ptr<games::Position>> positions,
                                     const ChoiceSettings& settings);

}  // namespace quern::selfplay
