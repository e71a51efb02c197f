// The result of a match, and what it says about the difference in strength.
#pragma once

#include <cstdint>

namespace quern::selfplay {

struct Interval {
  double low = 0, high = 0;
};

// For the first of two players.
struct MatchResult {
  uint64_t wins = 0, draws = 0, losses = 0;

  uint64_t games() const noexcept { return wins + draws + losses; }
  // The share of points, a draw being half a point; 0.5 without games.
  double score() const noexcept;
  // 95 % confidence, by Wilson's formula, as if every point was won or lost whole: with draws it is wider than it would
  // have to be, and it is right for a score of 0 or 1 too. [0, 1] without games.
  Interval score_interval() const noexcept;

  // The difference in Elo that a score means, with the same confidence; infinite for a score of 0 or 1.
  double elo() const noexcept;
  Interval elo_interval() const noexcept;

  MatchResult operator+(const MatchResult& other) const noexcept {
    return {wins + other.wins, draws + other.draws, losses + other.losses};
  }
  bool operator==(const MatchResult&) const = default;
};

// The same by who began.
struct MatchSides {
  MatchResult began, replied;  // of the first player

  MatchResult total() const noexcept { return began + replied; }

  bool operator==(const MatchSides&) const = default;
};

}  // namespace quern::selfplay
