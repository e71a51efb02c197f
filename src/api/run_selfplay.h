// Self-play, and training on positions of a caller's actors, for the Python module.
#pragma once

#include <quern/train.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "config/config.h"
#include "games/game.h"
#include "learn/own_rows.h"

namespace quern::api {

// Games that were played with the same weights, and trained on.
struct Generation {
  uint64_t generation = 0;           // counted from 0
  uint64_t step = 0;                 // the last one
  uint64_t games = 0;                // of the run so far
  uint64_t positions = 0;            // in the replay buffer
  double game_length = 0;            // mean number of moves
  double first_wins = 0, draws = 0;  // shares of its games
  double games_per_s = 0;
  double seconds = 0;         // of the run so far
  std::optional<double> elo;  // of the last rating, since the first network; none before it
};

struct SelfplayCall {
  const TrainOptions& options;  // out, resume and the callbacks; on_preparing is called several times a second
  std::function<bool(const Generation&)> on_generation = {};  // as on_step
  const games::Game* game = nullptr;                          // as in learn::SelfplayOptions
  const learn::OwnRows* own = nullptr;
};

// The settings of a new run of this preset, or of the one that is resumed; then `apply` is called on them, and the game
// is that of the preset. Error if the run to resume has another one.
train::RunConfig selfplay_config(const TrainOptions& options, const train::RunConfig& preset,
                                 const std::function<void(train::RunConfig&)>& apply);

TrainResult run_selfplay(const SelfplayCall& call, const train::RunConfig& config);

}  // namespace quern::api
