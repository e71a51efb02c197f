// What a run of self-play has done so far, over all its processes.
#pragma once

#include <cstdint>

#include "selfplay/actors.h"

namespace quern::learn {

struct Totals {
  uint64_t games = 0, moves = 0, rows = 0, evaluations = 0;
  uint64_t first_wins = 0, draws = 0;
  double seconds = 0;

  static Totals of(const selfplay::ActorStats& stats) {
    return {stats.games, stats.moves, stats.rows, stats.batches.evaluations, stats.first_player_wins, stats.draws};
  }
  Totals operator+(const Totals& other) const {
    return {games + other.games,           moves + other.moves, rows + other.rows,      evaluations + other.evaluations,
            first_wins + other.first_wins, draws + other.draws, seconds + other.seconds};
  }
  Totals operator-(const Totals& other) const {
    return {games - other.games,           moves - other.moves, rows - other.rows,      evaluations - other.evaluations,
            first_wins - other.first_wins, draws - other.draws, seconds - other.seconds};
  }
};

}  // namespace quern::learn
