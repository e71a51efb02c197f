#include "selfplay/match_result.h"

#include <algorithm>
#include <cmath>

namespace quern::selfplay {
namespace {

// The expected score is 1 / (1 + 10^(-elo / 400)).
double elo_of(double score) { return 400 * (std::log10(score) - std::log10(1 - score)); }

}  // namespace

double MatchResult::score() const noexcept {
  if (games() == 0) return 0.5;
  return (static_cast<double>(wins) + 0.5 * static_cast<double>(draws)) / static_cast<double>(games());
}

Interval MatchResult::score_interval() const noexcept {
  if (games() == 0) return {0, 1};
  constexpr double kZ = 1.959963984540054;  // 97.5 % of a normal distribution lie below
  const double n = static_cast<double>(games()), p = score(), square = kZ * kZ;
  const double centre = (p + square / (2 * n)) / (1 + square / n);
  const double half = kZ / (1 + square / n) * std::sqrt(p * (1 - p) / n + square / (4 * n * n));
  return {p == 0 ? 0 : std::max(0.0, centre - half), p == 1 ? 1 : std::min(1.0, centre + half)};
}

double MatchResult::elo() const noexcept { return elo_of(score()); }

Interval MatchResult::elo_interval() const noexcept {
  const Interval score = score_interval();
  return {elo_of(score.low), elo_of(score.high)};
}

}  // namespace quern::selfplay
