// The configurations that --preset starts from.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "config/config_fields.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "core/text.h"

namespace quern::train {
namespace {

RunConfig tiny() { return {}; }

RunConfig small() {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 384, .context = 256, .vocabulary = 0, .dropout = 0.1};
  config.train.steps = 2000;
  config.train.batch = 8;
  config.train.validation_interval = 250;
  config.optimizer.rate = 1e-3;
  config.optimizer.min_rate = 1e-4;
  config.optimizer.warmup = 100;
  return config;
}

// The vocabulary is padded from 50,257 tokens by 47 rows to a multiple of 64, to fill the last blocks of columns.
RunConfig gpt2() {
  RunConfig config;
  config.model = {.layers = 12, .heads = 12, .width = 768, .context = 64, .vocabulary = 50304, .dropout = 0.0};
  config.train.steps = 2000;
  config.train.batch = 4;
  config.train.validation_interval = 250;
  config.optimizer.rate = 6e-4;
  config.optimizer.min_rate = 6e-5;
  config.optimizer.warmup = 200;
  config.optimizer.beta2 = 0.95;
  config.data.tokenizer = TokenizerKind::kBpe;
  config.data.vocabulary = 50257;
  config.log.sample_interval = 1000;  // a text takes 7 s
  return config;
}

// Llamas of the size of tiny and small, for comparisons: pairs or threes of heads share keys and values.
RunConfig llama_tiny() {
  RunConfig config = tiny();
  config.model.family = nn::Family::kLlama;
  config.model.kv_heads = 2;
  return config;
}

RunConfig llama_small() {
  RunConfig config = small();
  config.model.family = nn::Family::kLlama;
  config.model.kv_heads = 2;
  return config;
}

// What lowered the loss most in a given time: Muon, a linear schedule down to 0, and every variant of the block
// (docs/quality.md has the measurements).
RunConfig quick(const RunConfig::Model& size, uint64_t steps, uint64_t batch) {
  RunConfig config;
  config.model = size;
  config.model.norm = nn::NormKind::kRmsnorm;
  config.model.positions = nn::Positions::kRotary;
  config.model.activation = nn::Activation::kRelu2;
  config.model.qk_norm = true;
  config.model.zero_projections = true;
  config.model.tied_output = false;
  config.model.logit_cap = 15;
  config.train.steps = steps;
  config.train.batch = batch;
  config.optimizer.kind = OptimizerRule::kMuon;
  config.optimizer.schedule = Schedule::kLinear;
  config.optimizer.rate = 4e-3;
  config.optimizer.min_rate = 0;
  return config;
}

RunConfig minute() {
  RunConfig config = quick({.layers = 4, .heads = 4, .width = 128, .context = 128}, 800, 16);
  config.train.validation_interval = 200;
  config.optimizer.weight_decay = 0;
  return config;
}

RunConfig ten_minutes() {
  RunConfig config = quick({.layers = 6, .heads = 6, .width = 192, .context = 256, .dropout = 0.1}, 1300, 16);
  config.train.validation_interval = 250;
  return config;
}

// A network over the squares of a board, and games in which a position takes a few hundred evaluations.
RunConfig board(const RunConfig::Model& size, const RunConfig::Selfplay& play, uint64_t steps, uint64_t batch) {
  RunConfig config;
  config.model = size;
  config.model.norm = nn::NormKind::kRmsnorm;
  config.model.activation = nn::Activation::kRelu2;
  config.train.steps = steps;
  config.train.batch = batch;
  config.optimizer.kind = OptimizerRule::kMuon;
  config.optimizer.schedule = Schedule::kWsd;
  config.optimizer.cooldown = 0.4;
  config.optimizer.rate = 2e-3;
  config.optimizer.min_rate = 0;
  config.optimizer.weight_decay = 0.01;
  config.selfplay = play;
  config.checkpoint.interval = play.generation_steps;
  return config;
}

RunConfig tictactoe() {
  RunConfig::Selfplay play{
      .game = "tictactoe", .sizes = {}, .generation_games = 100, .generation_steps = 20, .rows = 4000};
  play.simulations = 50;
  play.cheap_simulations = 10;
  play.full_share = 0.5;
  play.temperature_moves = 4;
  play.games_at_once = 64;
  play.rating_interval = 10;
  return board({.layers = 2, .heads = 2, .width = 32, .context = 9}, play, 400, 64);
}

// A generation has about 1,600 rows, so each is trained on about 4 times, and the learner takes a tenth of the time.
RunConfig connect4() {
  RunConfig::Selfplay play{
      .game = "connect4", .sizes = {}, .generation_games = 400, .generation_steps = 25, .rows = 40'000};
  play.noise_alpha = 1.4;
  play.opening_share = 0.5;
  play.opening_moves = 34;
  return board({.layers = 4, .heads = 2, .width = 64, .context = 42}, play, 5000, 256);
}

// An hour on two cores is far too short to learn chess. What it can teach is to mate in one: nearly all games begin
// where a move mates, and the few whole games cost as much time as a third of the others. A row takes 50 KB.
RunConfig chess() {
  RunConfig::Selfplay play{
      .game = "chess", .sizes = {}, .generation_games = 2000, .generation_steps = 24, .rows = 20'000};
  play.simulations = 32;
  play.cheap_simulations = 8;
  play.noise_alpha = 0.3;
  play.temperature_moves = 30;
  play.games_at_once = 64;
  play.opening_moves = 120;
  play.winning_share = 0.998;
  play.resign_below = -0.95;
  play.rating_interval = 0;
  RunConfig config = board({.layers = 4, .heads = 4, .width = 64, .context = 64}, play, 20'000, 256);
  config.checkpoint.interval = 20 * play.generation_steps;
  return config;
}

RunConfig::Model board_size(size_t squares) {
  if (squares <= 16) return {.layers = 2, .heads = 2, .width = 32, .context = squares};
  return {.layers = 4, .heads = 2, .width = 64, .context = squares};
}

struct Preset {
  std::string_view name;
  RunConfig (*make)();
};
constexpr Preset kPresets[] = {
    {"tiny", tiny},
    {"small", small},
    {"gpt2", gpt2},
    {"minute", minute},
    {"ten-minutes", ten_minutes},
    {"llama-tiny", llama_tiny},
    {"llama-small", llama_small},
};

}  // namespace

RunConfig preset(std::string_view name) {
  for (const Preset& candidate : kPresets) {
    if (candidate.name == name) return candidate.make();
  }
  throw Error("[config] preset: expected {}, found {}{}", preset_list(), in_quotes(name),
              did_you_mean(name, preset_names()));
}

RunConfig selfplay_preset(std::string_view game) {
  constexpr Preset kGames[] = {{"tictactoe", tictactoe}, {"connect4", connect4}, {"chess", chess}};
  for (const Preset& candidate : kGames) {
    if (candidate.name == game) return candidate.make();
  }
  constexpr std::string_view kNames[] = {"tictactoe", "connect4", "chess"};
  throw Error("[config] game: expected tictactoe, connect4 or chess, found {}{}", in_quotes(game),
              did_you_mean(game, kNames));
}

// Small networks, because rules in Python take longer than an evaluation.
RunConfig own_game_preset(std::string_view name, const OwnGameSizes& sizes) {
  RunConfig::Selfplay play{.game = fmt::format("{}{}", kOwnGamePrefix, name),
                           .sizes = {},
                           .generation_games = 100,
                           .generation_steps = 20,
                           .rows = 10'000};
  play.simulations = 50;
  play.cheap_simulations = 10;
  play.full_share = 0.5;
  play.temperature_moves = std::max<uint64_t>(sizes.max_moves / 4, 2);
  play.noise_alpha = std::clamp(std::round(100.0 / static_cast<double>(sizes.actions)) / 10, 0.3, 1.4);
  play.games_at_once = 64;
  play.rating_interval = 10;
  return board(board_size(sizes.squares), play, 400, 64);
}

RunConfig positions_preset(size_t squares) {
  RunConfig::Selfplay play{
      .game = std::string(kOwnPositions), .sizes = {}, .synchronous = false, .generation_steps = 50};
  play.rating_interval = 0;
  return board(board_size(squares), play, 1000, 64);
}

std::string preset_list() { return join_choices(preset_names()); }

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& candidate : kPresets) names.push_back(candidate.name);
  return names;
}

}  // namespace quern::train
