#include "cli/arena_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "learn/saved_network.h"
#include "learn/settings.h"
#include "selfplay/arena.h"
#include "selfplay/perfect_chooser.h"

namespace quern::cli {
namespace {

constexpr const char *kRandom = "random", *kPerfect = "perfect";

struct Opponent {
  std::string name;
  std::string run;  // empty unless it is a network
  uint64_t step = 0;
  selfplay::MatchPlayer player;
};

std::string name_of(const learn::SavedNetwork& network) {
  return fmt::format("{}@{}", network.folder.string(), network.step);
}

selfplay::MatchPlayer player_of(const learn::SavedNetwork& network, uint64_t simulations) {
  return {.model = network.network,
          .simulations = static_cast<uint32_t>(simulations),
          .search = learn::search_settings(network.config)};
}

Opponent find_opponent(const MatchOptions& options, const games::Game& game) {
  if (options.against == kRandom) {
    return {.name = "random moves", .run = {}, .player = {.make_chooser = [] {
                                                 return std::make_unique<selfplay::RandomChooser>();
                                               }}};
  }
  if (options.against == kPerfect) {
    return {.name = "perfect play", .run = {}, .player = selfplay::perfect_player(game)};
  }
  const learn::SavedNetwork network = learn::load_network(options.against, warn, game.spec().name);
  return {.name = name_of(network),
          .run = network.folder.string(),
          .step = network.step,
          .player = player_of(network, options.simulations)};
}

// Two networks draw no random numbers, so only openings make their games differ. Perfect play of Connect Four is
// computed from the ninth move on: each earlier position takes the solver seconds to minutes.
uint64_t default_opening_moves(const games::GameSpec& game, const MatchOptions& options) {
  if (options.against == kRandom) return 0;
  if (options.against == kPerfect) return game.name == "connect4" ? 8 : 0;
  return std::clamp<uint64_t>(game.max_moves / 20, 1, 4);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_row(const char* name, const selfplay::MatchResult& result) {
  fmt::print("{:16}{:>6}{:>7}{:>7}{:>8}{:>10}\n", name, result.games(), result.wins, result.draws, result.losses,
             percent(result.score()));
}

std::string elo_text(const selfplay::MatchResult& result) {
  const auto [low, high] = result.elo_interval();
  if (std::isinf(low)) return fmt::format("below {:+.0f} with 95 % confidence", high);
  if (std::isinf(high)) return fmt::format("above {:+.0f} with 95 % confidence", low);
  return fmt::format("{:+.0f}, with 95 % confidence from {:+.0f} to {:+.0f}", result.elo(), low, high);
}

void print_text(const std::string& name, const Opponent& opponent, const selfplay::MatchSides& sides) {
  const selfplay::MatchResult total = sides.total();
  fmt::print("{}\n", printable(fmt::format("{} against {}", name, opponent.name)));
  fmt::print("{:16}{:>6}{:>7}{:>7}{:>8}{:>10}\n", "", "games", "wins", "draws", "losses", "score");
  print_row("moving first", sides.began);
  print_row("moving second", sides.replied);
  print_row("total", total);
  fmt::print("Elo difference: {}\n", elo_text(total));
}

Json or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json counts(const selfplay::MatchResult& result) {
  return {{"wins", result.wins}, {"draws", result.draws}, {"losses", result.losses}, {"score", result.score()}};
}

void print_json(const MatchOptions& options, const learn::SavedNetwork& network, const Opponent& opponent,
                uint64_t opening_moves, const selfplay::MatchSides& sides) {
  const selfplay::MatchResult total = sides.total();
  const selfplay::Interval score = total.score_interval(), elo = total.elo_interval();
  Json object = {{"game", network.game->spec().name}, {"run", network.folder.string()}, {"step", network.step}};
  object["against"] =
      opponent.run.empty() ? Json(options.against) : Json({{"run", opponent.run}, {"step", opponent.step}});
  object["games"] = total.games();
  object["simulations"] = options.simulations;
  object["opening_moves"] = opening_moves;
  object["seed"] = options.seed;
  object.update(counts(total));
  object["score_interval"] = {score.low, score.high};
  object["elo"] = or_null(total.elo());
  object["elo_interval"] = {or_null(elo.low), or_null(elo.high)};
  object["moving_first"] = counts(sides.began);
  object["moving_second"] = counts(sides.replied);
  fmt::print("{}\n", json_text(object, 2));
}

}  // namespace

int show_match(const MatchOptions& options) {
  if (options.games % 2 != 0) {
    throw Error("arena: --games: expected an even number, as each opening is played twice, found {}", options.games);
  }
  const learn::SavedNetwork network = learn::load_network(options.run, warn);
  const Opponent opponent = find_opponent(options, *network.game);
  const uint64_t opening_moves = options.opening_moves.value_or(default_opening_moves(network.game->spec(), options));
  LongProgress progress([](uint64_t done, uint64_t total) { return fmt::format("{} of {} games", done, total); });
  const selfplay::MatchSides sides =
      selfplay::play_match_sides(*network.game, player_of(network, options.simulations), opponent.player,
                                 {.openings = options.games / 2,
                                  .opening_moves = opening_moves,
                                  .seed = options.seed,
                                  .threads = options.threads,
                                  .progress = [&](uint64_t done, uint64_t total) { progress.show(done, total); }});
  progress.clear();
  if (options.json) {
    print_json(options, network, opponent, opening_moves, sides);
  } else {
    print_text(name_of(network), opponent, sides);
  }
  return 0;
}

}  // namespace quern::cli
