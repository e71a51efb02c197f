// A finished game of self-play, and the rows that it adds to the training data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "games/game.h"
#include "selfplay/settings.h"

namespace quern::selfplay {

struct GameRecord {
  uint64_t number = 0;
  uint64_t version = 0;                            // of the weights
  games::Outcome outcome = games::Outcome::kDraw;  // for the player who began
  bool resigned = false;
  std::vector<games::Action> moves;
  size_t opening = 0;  // how many of them, at the beginning, were drawn at random
  uint64_t simulations = 0;

  // One after another for each recorded search, in the order of the game; see rows.h.
  size_t rows = 0;
  std::vector<float> planes;    // (rows, planes, rows of the board, columns)
  std::vector<float> policies;  // (rows, actions)
  std::vector<float> outcomes;  // (rows, 3)

  // Empties it, and keeps the memory.
  void clear() noexcept {
    number = version = simulations = rows = opening = 0;
    outcome = games::Outcome::kDraw;
    resigned = false;
    moves.clear();
    planes.clear();
    policies.clear();
    outcomes.clear();
  }

  bool operator==(const GameRecord&) const = default;
};

// About how many bytes the record of a game of usual length takes.
size_t planned_record_bytes(const games::GameSpec& spec, const PlaySettings& settings);

}  // namespace quern::selfplay
