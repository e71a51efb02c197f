// A player that never makes a mistake, in games that have a solver.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "games/solver.h"
#include "selfplay/match_player.h"

namespace quern::selfplay {

// Results of positions that perfect players of several threads have met: matches repeat their openings, and those take
// the solver the longest. Any thread.
class KnownResults {
 public:
  bool find(uint64_t hash, games::Outcome& outcome) const;
  void put(uint64_t hash, games::Outcome outcome);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, games::Outcome> results_;
};

// Plays one of the moves that lead to the best result, each with the same probability; how soon a game is won or lost
// does not matter. In a lost position these are all moves.
class PerfectChooser final : public MoveChooser {
 public:
  PerfectChooser(std::unique_ptr<games::Solver> solver, std::shared_ptr<KnownResults> known)
      : solver_(std::move(solver)), known_(std::move(known)) {}

  games::Action choose(const games::Position& position, std::span<const games::Action> legal,
                       RandomWords& words) override;

 private:
  games::Outcome outcome(const games::Position& position);

  std::unique_ptr<games::Solver> solver_;
  std::shared_ptr<KnownResults> known_;
  std::vector<games::Action> shuffled_;
};

// Choosers for a match, with a solver for each thread. Error for a game without a solver.
MatchPlayer perfect_player(const games::Game& game);

}  // namespace quern::selfplay
