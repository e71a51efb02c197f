#include "learn/actor_report.h"

#include <fmt/format.h>

#include <sstream>

namespace quern::learn {

std::string actor_report(const Totals& totals) {
  return fmt::format("played {} {} {} {} {} {}", totals.games, totals.moves, totals.rows, totals.evaluations,
                     totals.first_wins, totals.draws);
}

std::optional<Totals> parse_actor_report(const std::string& line) {
  std::istringstream words(line);
  std::string first;
  Totals totals;
  words >> first >> totals.games >> totals.moves >> totals.rows >> totals.evaluations >> totals.first_wins >>
      totals.draws;
  return words && first == "played" ? std::optional(totals) : std::nullopt;
}

}  // namespace quern::learn
