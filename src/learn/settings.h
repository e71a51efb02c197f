// What the settings of a run of self-play mean for its parts.
#pragma once

#include <cstddef>
#include <string>

#include "config/config.h"
#include "games/game.h"
#include "nn/models/board_config.h"
#include "selfplay/actors.h"

namespace quern::learn {

// The game of the settings: what games::make_game() says of its name or, for a game that it does not make, what was
// recorded. Error if there is none.
games::GameSpec recorded_game(const train::RunConfig& config);
// What selfplay.sizes records of such a game.
std::string sizes_text(const games::GameSpec& game);

// The network for the game. Error if the settings are not those of such a run, or if the network cannot be built.
nn::BoardConfig board_config(const train::RunConfig& config, const games::GameSpec& game);

// A default warm-up yields to the number of steps: where it would be too long, it takes all steps before the cooldown.
void fit_warmup(train::RunConfig& config);

selfplay::SearchSettings search_settings(const train::RunConfig& config);
selfplay::PlaySettings play_settings(const train::RunConfig& config);
selfplay::BatchSettings batch_settings(const train::RunConfig& config);

// For the actors of a process, with this many threads.
selfplay::ActorSettings actor_settings(const train::RunConfig& config, size_t threads);

}  // namespace quern::learn
