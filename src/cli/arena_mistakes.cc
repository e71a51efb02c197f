#include "cli/arena_mistakes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "checkpoint/folder.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "evaluate/find_checkpoint.h"
#include "games/test_sets.h"
#include "learn/saved_network.h"
#include "learn/settings.h"
#include "report/output.h"
#include "selfplay/mistakes.h"

namespace quern::cli {
namespace {

constexpr uint64_t kPositions = 1000;  // of each set of Connect Four or chess
constexpr int kColumn = 8;

struct SolvedSet {
  std::string name;
  games::SolvedPositions solved;
};

// The results of one checkpoint, in the order of the sets.
struct Judged {
  std::string name;
  std::filesystem::path run;
  uint64_t step = 0;
  std::vector<selfplay::Mistakes> sets;
};

LongProgress::Text counting(std::string what) {
  return [what = std::move(what)](uint64_t done, uint64_t total) {
    return fmt::format("{}: {} of {} positions", what, done, total);
  };
}

// RUN@STEP for every checkpoint of a run.
std::vector<std::string> checkpoints_of(const std::string& run) {
  const auto [folder, chosen] = train::find_checkpoint(run, {});
  if (chosen) throw Error("arena: --all: expected a run, found the checkpoint {}", in_quotes(run));
  train::read_config(folder);
  std::vector<std::string> result;
  for (const uint64_t step : checkpoint::list_steps(folder / train::kCheckpointFolder)) {
    result.push_back(fmt::format("{}@{}", run, step));
  }
  if (result.empty()) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder.string());
  return result;
}

std::vector<std::string> checkpoints_of(const MistakesOptions& options) {
  if (!options.all) return options.runs;
  std::vector<std::string> result;
  for (const std::string& run : options.runs) std::ranges::move(checkpoints_of(run), std::back_inserter(result));
  return result;
}

// The test positions of a game with their results, and how the networks do in them.
class MistakesTest {
 public:
  MistakesTest(const games::Game& game, const MistakesOptions& options)
      : options_(options), solvers_(game.spec().name, options.threads) {
    for (games::TestSet& set : games::test_sets(game, options.positions.value_or(kPositions), options.seed)) {
      LongProgress progress(counting(set.name + ": solving"));
      games::SolvedPositions solved(std::move(set.positions), solvers_, shown(progress));
      sets_.push_back({std::move(set.name), std::move(solved)});
    }
  }

  const std::vector<SolvedSet>& sets() const { return sets_; }

  Judged judge(const learn::SavedNetwork& network) {
    Judged result{.name = fmt::format("{}@{}", network.folder.string(), network.step),
                  .run = network.folder,
                  .step = network.step,
                  .sets = {}};
    for (auto& [name, solved] : sets_) {
      LongProgress searching(counting(name + ": searching"));
      const auto chosen = selfplay::choose_moves(network.game->spec(), *network.network, solved.positions(),
                                                 {.simulations = static_cast<uint32_t>(options_.simulations),
                                                  .search = learn::search_settings(network.config),
                                                  .threads = options_.threads,
                                                  .progress = shown(searching)});
      searching.clear();
      LongProgress judging(counting(name + ": judging"));
      result.sets.push_back(selfplay::count_mistakes(solved, chosen, shown(judging)));
    }
    return result;
  }

 private:
  static games::SolverProgress shown(LongProgress& progress) {
    return [&progress](uint64_t done, uint64_t total) { progress.show(done, total); };
  }

  const MistakesOptions& options_;
  games::SolverPool solvers_;
  std::vector<SolvedSet> sets_;
};

double share(size_t part, size_t of) { return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of); }

// Three groups of columns, each with every set.
class Table {
 public:
  Table(size_t name_width, const std::vector<SolvedSet>& sets) : name_width_(static_cast<int>(name_width)) {
    for (const SolvedSet& set : sets) sets_.push_back(set.name);
  }

  void print_head(uint64_t simulations) const {
    const int group = kColumn * static_cast<int>(sets_.size());
    const bool wide = sets_.size() > 1;  // room for what a group means
    const std::string searched = fmt::format("{} simulations", simulations);
    if (wide) {
      fmt::print("{:{}}{:>{}}{:>{}}{:>{}}\n", "", name_width_, "mistakes: network", group, searched, group,
                 "result foreseen", group);
      fmt::print("{:{}}", "checkpoint", name_width_);
      for (int i = 0; i < 3; ++i) {
        for (const std::string& set : sets_) fmt::print("{:>{}}", set, kColumn);
      }
      fmt::print("\n");
    } else {
      fmt::print("{:{}}  mistakes: network  {:>15}  result foreseen\n", "checkpoint", name_width_, searched);
    }
    std::fflush(stdout);
  }

  void print(const Judged& judged) const {
    fmt::print("{:{}}", judged.name, name_width_);
    const bool wide = sets_.size() > 1;
    const std::array<int, 3> widths = wide ? std::array{kColumn, kColumn, kColumn} : std::array{19, 17, 17};
    const std::array columns = {&selfplay::Mistakes::policy, &selfplay::Mistakes::searched,
                                &selfplay::Mistakes::right_outcomes};
    for (size_t i = 0; i < columns.size(); ++i) {
      for (const selfplay::Mistakes& set : judged.sets) {
        fmt::print("{:>{}}", fmt::format("{:.1f} %", 100 * share(set.*columns[i], set.positions)), widths[i]);
      }
    }
    fmt::print("\n");
    std::fflush(stdout);
  }

 private:
  int name_width_;
  std::vector<std::string> sets_;
};

Json to_json(const Judged& judged, const std::vector<SolvedSet>& sets) {
  Json object = {{"run", judged.run.string()}, {"step", judged.step}, {"sets", Json::object()}};
  for (size_t i = 0; i < sets.size(); ++i) {
    const selfplay::Mistakes& set = judged.sets[i];
    object["sets"][sets[i].name] = {{"positions", set.positions},
                                    {"network_mistakes", share(set.policy, set.positions)},
                                    {"search_mistakes", share(set.searched, set.positions)},
                                    {"result_foreseen", share(set.right_outcomes, set.positions)}};
  }
  return object;
}

// Reads only the settings, so that a wrong run is found before anything is solved.
std::string game_of(const std::vector<std::string>& checkpoints) {
  std::string game;
  for (const std::string& name : checkpoints) {
    const train::RunConfig config = train::read_config(train::find_checkpoint(name, {}).run);
    if (!config.is_selfplay() || (!game.empty() && game != config.selfplay.game)) {
      throw Error("[run] {}: expected a run of `quern selfplay{}{}`, found one {}", name, game.empty() ? "" : " ", game,
                  config.is_selfplay() ? "of " + config.selfplay.game : "that trains on text");
    }
    game = config.selfplay.game;
  }
  return game;
}

}  // namespace

int show_mistakes(const MistakesOptions& options) {
  const std::vector<std::string> checkpoints = checkpoints_of(options);
  const std::unique_ptr<games::Game> game = games::make_game(game_of(checkpoints));
  if (options.positions && game->spec().name == "tictactoe") {
    throw Error(
        "arena: --positions: expected a run of connect4 or chess, found one of tictactoe: all its positions are "
        "tested");
  }
  MistakesTest test(*game, options);
  size_t width = 12;
  for (const std::string& name : checkpoints) width = std::max(width, name.size() + (options.all ? 0 : 6));
  const Table table(width, test.sets());
  if (!options.json) table.print_head(options.simulations);
  Json list = Json::array();
  for (const std::string& name : checkpoints) {
    const Judged judged = test.judge(learn::load_network(name, warn, game->spec().name));
    if (options.json) list.push_back(to_json(judged, test.sets()));
    if (!options.json) table.print(judged);
  }
  if (!options.json) return 0;
  const Json object = {{"game", game->spec().name},
                       {"simulations", options.simulations},
                       {"seed", options.seed},
                       {"checkpoints", std::move(list)}};
  fmt::print("{}\n", json_text(object, 2));
  return 0;
}

}  // namespace quern::cli
