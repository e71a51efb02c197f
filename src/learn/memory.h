// How much memory self-play takes beside the learner.
#pragma once

#include <cstddef>

#include "config/config.h"
#include "games/game.h"
#include "nn/declaration.h"

namespace quern::learn {

// About how many bytes the replay buffer, the games of the actor threads, and the networks that play take. Actors that
// are processes have memory of their own, which does not count.
size_t planned_bytes(const train::RunConfig& config, const games::GameSpec& game, const nn::Declaration& model);

}  // namespace quern::learn
