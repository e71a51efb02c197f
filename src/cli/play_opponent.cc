#include "cli/play_opponent.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/progress.h"
#include "cli/warnings.h"
#include "games/solver.h"
#include "learn/saved_network.h"
#include "learn/settings.h"
#include "selfplay/perfect_chooser.h"
#include "selfplay/thinker.h"

namespace quern::cli {
namespace {

constexpr size_t kHints = 5;

class NetworkOpponent final : public PlayOpponent {
 public:
  NetworkOpponent(const learn::SavedNetwork& network, uint64_t simulations)
      : game_(network.game),
        name_(fmt::format("{}@{}", network.folder.string(), network.step)),
        thinker_(network.game->spec(), network.network, learn::search_settings(network.config)),
        simulations_(static_cast<uint32_t>(simulations)) {}

  const std::string& name() const override { return name_; }

  Choice choose(const games::Position& position) override {
    const selfplay::Search& search = think(position);
    const selfplay::Wdl value = search.root_value();
    return {search.line(1).at(0), fmt::format("it expects to win {:.0f} %, draw {:.0f} %, lose {:.0f} %",
                                              100 * value.win, 100 * value.draw, 100 * value.loss)};
  }

  std::string hint(const games::Position& position) override {
    const std::vector<selfplay::RankedMove> moves = selfplay::ranked_moves(think(position));
    std::string text;
    for (size_t i = 0; i < std::min(moves.size(), kHints); ++i) {
      const auto& [action, share, value] = moves[i];
      if (i > 0 && share == 0) break;
      text += fmt::format("  {:6}{:3.0f} % of the visits, result {:+.2f}: win {:.0f} %, draw {:.0f} %, loss {:.0f} %\n",
                          game_->action_text(position, action), 100 * share, value.score(), 100 * value.win,
                          100 * value.draw, 100 * value.loss);
    }
    return text;
  }

 private:
  const selfplay::Search& think(const games::Position& position) {
    LongProgress progress(
        [](uint64_t done, uint64_t total) { return fmt::format("thinking: {} of {} simulations", done, total); });
    return thinker_.think(position, simulations_, [&](const selfplay::Search& search) {
      progress.show(search.root_visits(), simulations_);
      return false;
    });
  }

  std::shared_ptr<const games::Game> game_;
  std::string name_;
  selfplay::Thinker thinker_;
  uint32_t simulations_;
};

const char* word_of(games::Outcome outcome) {
  if (outcome == games::Outcome::kDraw) return "draw";
  return outcome == games::Outcome::kWin ? "win" : "loss";
}

class PerfectOpponent final : public PlayOpponent {
 public:
  explicit PerfectOpponent(std::shared_ptr<const games::Game> game)
      : game_(std::move(game)),
        chooser_(selfplay::perfect_player(*game_).make_chooser()),
        solver_(games::make_solver(game_->spec().name)) {}

  const std::string& name() const override { return name_; }

  // Another move among equally good ones in each game of a session.
  Choice choose(const games::Position& position) override {
    Progress progress;
    progress.show("solving");
    std::vector<games::Action> legal;
    position.legal_actions(legal);
    selfplay::RandomWords words(selfplay::move_stream(Purpose::kMatch, 1, choices_++, 0));
    return {chooser_->choose(position, legal, words), {}};
  }

  std::string hint(const games::Position& position) override {
    Progress progress;
    progress.show("solving");
    std::vector<games::Action> legal;
    position.legal_actions(legal);
    const std::vector<games::Outcome> outcomes = solver_->action_outcomes(position);
    std::string text;
    for (const games::Outcome outcome : {games::Outcome::kWin, games::Outcome::kDraw, games::Outcome::kLoss}) {
      for (size_t i = 0; i < legal.size(); ++i) {
        if (outcomes[i] != outcome) continue;
        text += fmt::format("  {:6}{}\n", game_->action_text(position, legal[i]), word_of(outcome));
      }
    }
    return text;
  }

 private:
  std::shared_ptr<const games::Game> game_;
  std::string name_ = "perfect play";
  std::unique_ptr<selfplay::MoveChooser> chooser_;
  std::unique_ptr<games::Solver> solver_;
  uint64_t choices_ = 0;
};

}  // namespace

OpponentOfGame network_opponent(const std::string& run, const std::string& game, uint64_t simulations) {
  const learn::SavedNetwork network = learn::load_network(run, warn, game);
  return {network.game, std::make_unique<NetworkOpponent>(network, simulations)};
}

OpponentOfGame perfect_opponent(const std::string& game) {
  const std::shared_ptr<const games::Game> rules = games::make_game(game);
  return {rules, std::make_unique<PerfectOpponent>(rules)};
}

}  // namespace quern::cli
