#include "learn/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace quern::learn {
namespace {

kernels::DType storage_of(train::Precision precision) {
  switch (precision) {
    case train::Precision::kBf16:
      return kernels::DType::kBF16;
    case train::Precision::kFp16:
      return kernels::DType::kF16;
    default:
      return kernels::DType::kF32;
  }
}

}  // namespace

std::string sizes_text(const games::GameSpec& game) {
  return fmt::format("planes={} rows={} columns={} actions={} max_moves={}", game.planes, game.rows, game.columns,
                     game.actions, game.max_moves);
}

games::GameSpec recorded_game(const train::RunConfig& config) {
  if (!config.has_own_game() && !config.has_own_actors()) return games::make_game(config.selfplay.game)->spec();
  const std::string& text = config.selfplay.sizes;
  games::GameSpec spec{
      .name = config.selfplay.game, .rows = 0, .columns = 0, .planes = 0, .actions = 0, .max_moves = 0};
  const std::pair<const char*, size_t*> kSizes[] = {{"planes=", &spec.planes},
                                                    {"rows=", &spec.rows},
                                                    {"columns=", &spec.columns},
                                                    {"actions=", &spec.actions},
                                                    {"max_moves=", &spec.max_moves}};
  for (const auto& [name, size] : kSizes) {
    const size_t at = text.find(name);
    if (at == std::string::npos) continue;
    const char* const digits = text.data() + at + std::string_view(name).size();
    std::from_chars(digits, text.data() + text.size(), *size);
  }
  if (sizes_text(spec) != text) {
    throw Error("[config] selfplay.sizes: expected planes=P rows=R columns=C actions=A max_moves=M, found {}",
                in_quotes(text));
  }
  games::check(games::GameShape(spec), "[config] selfplay.sizes");
  return spec;
}

nn::BoardConfig board_config(const train::RunConfig& config, const games::GameSpec& game) {
  if (config.selfplay.game != game.name) {
    throw Error("[config] selfplay.game: expected {}, found {}", game.name,
                config.is_selfplay() ? config.selfplay.game : "none");
  }
  if (!config.selfplay.sizes.empty() && config.selfplay.sizes != sizes_text(game)) {
    throw Error("[config] selfplay.sizes: expected {}, those of {}, found {}", sizes_text(game), game.name,
                config.selfplay.sizes);
  }
  const train::RunConfig::Model& model = config.model;
  if (model.context != game.squares()) {
    throw Error("[config] model.context: expected {}, the squares of {}, found {}", game.squares(), game.name,
                model.context);
  }
  const nn::BoardConfig board{.squares = game.squares(),
                              .planes = game.planes,
                              .actions = game.actions,
                              .width = model.width,
                              .layers = model.layers,
                              .heads = model.heads,
                              .inner_width = model.inner_width,
                              .norm = model.norm,
                              .activation = model.activation,
                              .norm_epsilon = model.norm_epsilon,
                              .value_weight = config.selfplay.value_weight,
                              .storage = storage_of(config.train.precision)};
  nn::check(board);
  return board;
}

void fit_warmup(train::RunConfig& config) {
  constexpr double kRounding = 1e-3;  // as train::validate() counts them
  const double share = 1 - config.optimizer.cooldown;
  const auto longest = static_cast<uint64_t>(static_cast<double>(config.train.steps) * share + kRounding);
  if (!config.given.warmup) config.optimizer.warmup = std::min(config.optimizer.warmup, longest);
}

selfplay::SearchSettings search_settings(const train::RunConfig& config) {
  const train::RunConfig::Selfplay& play = config.selfplay;
  return {.c_puct = static_cast<float>(play.c_puct),
          .fpu_reduction = static_cast<float>(play.fpu_reduction),
          .reuse_tree = play.reuse_tree};
}

selfplay::PlaySettings play_settings(const train::RunConfig& config) {
  const train::RunConfig::Selfplay& play = config.selfplay;
  return {.search = search_settings(config),
          .simulations = static_cast<uint32_t>(play.simulations),
          .cheap_simulations = static_cast<uint32_t>(play.cheap_simulations),
          .full_share = static_cast<float>(play.full_share),
          .noise_share = static_cast<float>(play.noise_share),
          .noise_alpha = static_cast<float>(play.noise_alpha),
          .temperature = static_cast<float>(play.temperature),
          .temperature_moves = static_cast<uint32_t>(play.temperature_moves),
          .opening_share = static_cast<float>(play.opening_share),
          .opening_moves = static_cast<uint32_t>(play.opening_moves),
          .winning_share = static_cast<float>(play.winning_share),
          .resign_below = static_cast<float>(play.resign_below),
          .resign_share = static_cast<float>(play.resign_share),
          .root_value_share = static_cast<float>(play.root_value_share)};
}

selfplay::BatchSettings batch_settings(const train::RunConfig& config) {
  return {.games = config.selfplay.games_at_once, .cache_positions = config.selfplay.cache};
}

selfplay::ActorSettings actor_settings(const train::RunConfig& config, size_t threads) {
  return {.play = play_settings(config),
          .batch = batch_settings(config),
          .threads = threads,
          .seed = config.train.seed,
          .synchronous = config.selfplay.synchronous,
          .games_per_generation = config.selfplay.generation_games,
          .lag = config.selfplay.lag};
}

}  // namespace quern::learn
