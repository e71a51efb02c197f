#include "selfplay/arena.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"
#include "selfplay/evaluation_batch.h"
#include "selfplay/expect_between.h"
#include "selfplay/match_game.h"
#include "selfplay/priors.h"

namespace quern::selfplay {
namespace {

constexpr uint32_t kOpeningMoves = 0x80000000;  // numbers of moves in streams: not those of moves in games
constexpr uint32_t kAttempts = 1000;

// Random moves from the start; again if the game is over before. `attempt` is counted in the high half of the game's
// number, which no number of an opening reaches.
std::unique_ptr<games::Position> draw_opening(const games::Game& game, const MatchSettings& settings, uint64_t pair) {
  std::vector<games::Action> legal;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    std::unique_ptr<games::Position> position = game.start();
    RandomWords words(move_stream(Purpose::kMatch, settings.seed, pair | attempt << 32, kOpeningMoves));
    for (size_t move = 0; move < settings.opening_moves && !position->over(); ++move) {
      position->legal_actions(legal);
      position->play(legal[words.below(static_cast<uint32_t>(legal.size()))]);
    }
    if (!position->over()) return position;
  }
  throw Error("[selfplay] opening_moves: expected so few that a game is not over, found {}", settings.opening_moves);
}

// Of games: the next one to start, and how many are over.
struct Counters {
  std::atomic<uint64_t> next{0}, done{0};
};

// What a thread of the match owns. It takes the number of a game whenever one of its games is over: number 2 p and
// 2 p + 1 are the games from opening p.
class MatchThread {
 public:
  MatchThread(const games::Game& game, const std::array<const MatchPlayer*, 2>& players, const MatchSettings& settings)
      : game_(game), settings_(settings), priors_(game.spec().actions) {
    const size_t share = (2 * settings.openings + settings.threads - 1) / settings.threads;
    const size_t games = std::min(settings.games_at_once, share);
    for (size_t p = 0; p < 2; ++p) {
      batches_.emplace_back(game.spec(), games);
      if (players[p]->model != nullptr) evaluators_[p] = players[p]->model->make_evaluator(games);
      if (players[p]->model == nullptr) choosers_[p] = players[p]->make_chooser();
    }
    for (size_t i = 0; i < games; ++i) {
      games_.push_back({MatchGame({side(*players[0], 0), side(*players[1], 1)}), 0, false});
    }
  }

  MatchSides play(Counters& counters, const std::function<void(uint64_t, uint64_t)>& progress) {
    while (play_round(counters)) {
      if (progress) progress(counters.done.load(std::memory_order_relaxed), 2 * settings_.openings);
    }
    return result_;
  }

 private:
  struct Place {
    MatchGame game;
    uint64_t number;
    bool playing;
  };
  struct Waiting {
    size_t place, index;
  };

  MatchSide side(const MatchPlayer& player, size_t p) {
    if (player.model == nullptr) return {.search = {}, .chooser = choosers_[p].get()};
    return {.search = Search(player.search), .simulations = player.simulations};
  }

  // False when there is nothing left to play.
  bool play_round(Counters& counters) {
    for (size_t i = 0; i < games_.size(); ++i) advance(i, counters);
    const bool more = !waiting_[0].empty() || !waiting_[1].empty();
    for (size_t p = 0; p < 2; ++p) evaluate(p);
    return more;
  }

  // Plays games in a place until one needs an evaluation, or until there are no more.
  void advance(size_t i, Counters& counters) {
    Place& place = games_[i];
    while (place.playing || start(place, counters.next)) {
      if (const games::Position* leaf = place.game.next_leaf()) {
        const size_t player = place.game.leaf_player();
        waiting_[player].push_back({i, batches_[player].add(*leaf, leaf->hash())});
        return;
      }
      place.playing = false;
      count(place.number % 2 == 0 ? result_.began : result_.replied, place.game.outcome());
      counters.done.fetch_add(1, std::memory_order_relaxed);
    }
  }

  bool start(Place& place, std::atomic<uint64_t>& next) {
    if (next.load(std::memory_order_relaxed) >= 2 * settings_.openings) return false;
    const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
    if (number >= 2 * settings_.openings) return false;
    const std::unique_ptr<games::Position> opening = draw_opening(game_, settings_, number / 2);
    place.game.start(*opening, number % 2, settings_.seed, number);
    place.number = number;
    return place.playing = true;
  }

  void evaluate(size_t p) {
    if (waiting_[p].empty()) return;
    batches_[p].evaluate(*evaluators_[p]);
    for (const Waiting& waiting : waiting_[p]) {
      MatchGame& game = games_[waiting.place].game;
      const std::span<float> priors(priors_.data(), game.leaf_actions().size());
      write_priors(batches_[p].logits(waiting.index), game.leaf_actions(), priors);
      game.take(priors, read_outcome(batches_[p].outcome(waiting.index)));
    }
    waiting_[p].clear();
    batches_[p].clear();
  }

  static void count(MatchResult& result, games::Outcome outcome) {
    result.wins += outcome == games::Outcome::kWin ? 1 : 0;
    result.draws += outcome == games::Outcome::kDraw ? 1 : 0;
    result.losses += outcome == games::Outcome::kLoss ? 1 : 0;
  }

  const games::Game& game_;
  const MatchSettings& settings_;
  std::array<std::unique_ptr<Evaluator>, 2> evaluators_;
  std::array<std::unique_ptr<MoveChooser>, 2> choosers_;
  std::vector<EvaluationBatch> batches_;
  std::array<std::vector<Waiting>, 2> waiting_;
  std::vector<Place> games_;
  std::vector<float> priors_;
  MatchSides result_;
};

void check_player(const MatchPlayer& player) {
  if ((player.model != nullptr) == (player.make_chooser != nullptr)) {
    throw Error("[selfplay] match: expected players with either a model or a chooser, found one with {}",
                player.model != nullptr ? "both" : "neither");
  }
  check(player.search);
}

}  // namespace

MatchResult play_match(const games::Game& game, const MatchPlayer& first, const MatchPlayer& second,
                       const MatchSettings& settings) {
  return play_match_sides(game, first, second, settings).total();
}

MatchSides play_match_sides(const games::Game& game, const MatchPlayer& first, const MatchPlayer& second,
                            const MatchSettings& settings) {
  for (const MatchPlayer* player : {&first, &second}) check_player(*player);
  expect_between("openings", settings.openings, 1, 1 << 30);
  expect_between("opening_moves", settings.opening_moves, 0, game.spec().max_moves);
  expect_between("threads", settings.threads, 1, 1024);
  expect_between("games_at_once", settings.games_at_once, 1, 1 << 16);
  Counters counters;
  std::mutex mutex;
  MatchSides sum;
  ThreadPool pool(settings.threads, [&](const Member& member) {
    MatchThread thread(game, {&first, &second}, settings);
    const MatchSides part = thread.play(counters, member.leads() ? settings.progress : nullptr);
    const std::lock_guard lock(mutex);
    sum = {sum.began + part.began, sum.replied + part.replied};
  });
  pool.run(settings.threads);
  return sum;
}

}  // namespace quern::selfplay
