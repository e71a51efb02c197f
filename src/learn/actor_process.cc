#include "learn/actor_process.h"

#include <memory>
#include <optional>
#include <utility>

#include "config/run_folder.h"
#include "core/clock.h"
#include "core/error.h"
#include "games/game.h"
#include "learn/actor_files.h"
#include "learn/async_actors.h"
#include "learn/settings.h"
#include "selfplay/actors.h"

namespace quern::learn {
namespace {

constexpr double kReportEvery = 0.2, kLookForWeightsEvery = 0.2;  // seconds
constexpr double kPatience = 5;

struct Weights {
  uint64_t version = 0;
  std::shared_ptr<const Network> network;
};

// nullopt if there are none that are newer.
std::optional<Weights> next_weights(const std::filesystem::path& run, const nn::BoardConfig& config,
                                    std::optional<uint64_t> known = {}) {
  const std::optional<uint64_t> version = newest_weights(run, known);
  if (!version) return std::nullopt;
  std::shared_ptr<const Network> network = read_weights(run, *version, config);
  if (network == nullptr) return std::nullopt;
  return Weights{*version, std::move(network)};
}

}  // namespace

void run_actor(const std::filesystem::path& run, uint64_t launch, const std::function<bool()>& stopped,
               const std::function<void(const Totals&)>& report) {
  const train::RunConfig config = train::read_config(actor_folder(run));
  const std::unique_ptr<games::Game> game = games::make_game(config.selfplay.game);
  const nn::BoardConfig board = board_config(config, game->spec());
  replay::ReplayBuffer buffer = replay::ReplayBuffer::attach(buffer_storage(config, run), kPatience);
  std::optional<Weights> weights = next_weights(run, board);
  if (!weights) throw Error("[selfplay] {}: expected weights to play with, found none", actor_folder(run).string());

  selfplay::ActorSettings settings = actor_settings(config, 1);
  settings.first_game = first_game(launch);
  selfplay::Actors actors(*game, buffer, settings, {{{0, weights->network}}});
  double reported = 0, looked = seconds_now();
  actors.await_end([&] {
    if (stopped()) return actors.stop();
    const double now = seconds_now();
    if (now - looked >= kLookForWeightsEvery) {
      looked = now;
      if (std::optional<Weights> newer = next_weights(run, board, weights->version)) {
        weights = std::move(newer);
        actors.publish(weights->network);
      }
    }
    if (now - reported >= kReportEvery) {
      reported = now;
      report(Totals::of(actors.stats()));
    }
  });
}

}  // namespace quern::learn
