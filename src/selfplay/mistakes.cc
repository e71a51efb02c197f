#include "selfplay/mistakes.h"

#include <algorithm>
#include <vector>

namespace quern::selfplay {
namespace {

size_t count(const std::vector<bool>& values) {
  return static_cast<size_t>(std::count(values.begin(), values.end(), true));
}

std::vector<games::Action> actions_of(std::span<const ChosenMove> chosen, games::Action ChosenMove::*which) {
  std::vector<games::Action> actions;
  for (const ChosenMove& move : chosen) actions.push_back(move.*which);
  return actions;
}

}  // namespace

games::Outcome likeliest(const Wdl& value) {
  if (value.win >= value.draw && value.win >= value.loss) return games::Outcome::kWin;
  return value.draw >= value.loss ? games::Outcome::kDraw : games::Outcome::kLoss;
}

Mistakes count_mistakes(games::SolvedPositions& solved, std::span<const ChosenMove> chosen,
                        const games::SolverProgress& progress) {
  Mistakes result;
  result.positions = solved.size();
  result.policy = count(solved.mistakes(actions_of(chosen, &ChosenMove::policy), progress));
  result.searched = count(solved.mistakes(actions_of(chosen, &ChosenMove::searched), progress));
  for (size_t i = 0; i < chosen.size(); ++i) {
    result.right_outcomes += likeliest(chosen[i].value) == solved.outcome(i) ? 1 : 0;
  }
  return result;
}

}  // namespace quern::selfplay
