#include "learn/memory.h"

#include <algorithm>

#include "learn/settings.h"
#include "nn/weights.h"
#include "selfplay/game_batch.h"
#include "train/plan.h"

namespace quern::learn {
namespace {

// Weights for playing have the copies that forward reads, half of what training has.
size_t network_bytes(const nn::Declaration& model) {
  return model.parameters.count() * sizeof(float) +
         nn::Weights::packed_bytes(model.parameters, model.activations.storage) / 2;
}

// One that is played with in each generation that is not over, the learner's newest copy, and that of the last rating.
size_t networks(const train::RunConfig::Selfplay& play) { return play.synchronous ? play.lag + 3 : 3; }

size_t actor_bytes(const train::RunConfig& config, const games::GameSpec& game) {
  const train::RunConfig::Selfplay& play = config.selfplay;
  const size_t threads = train::thread_count(config);
  const size_t batches =
      threads * selfplay::GameBatch::planned_bytes(game, play_settings(config), batch_settings(config));
  if (!play.synchronous) return batches;
  const size_t waiting = std::max<uint64_t>(play.lag, 1) * play.generation_games + threads * play.games_at_once;
  return batches + waiting * selfplay::planned_record_bytes(game, play_settings(config));
}

}  // namespace

size_t planned_bytes(const train::RunConfig& config, const games::GameSpec& game, const nn::Declaration& model) {
  const size_t row = sizeof(float) * (game.planes * game.squares() + game.actions + 3);
  if (config.has_own_actors()) return network_bytes(model);  // the buffer and the games are the caller's
  const size_t actors = config.selfplay.processes > 0 ? 0 : actor_bytes(config, game);
  return config.selfplay.rows * row + networks(config.selfplay) * network_bytes(model) + actors;
}

}  // namespace quern::learn
