#include "games/solver.h"

#include "core/error.h"
#include "games/chess_mates.h"
#include "games/connect4_solver.h"
#include "games/tictactoe_solver.h"

namespace quern::games {

std::vector<Outcome> Solver::action_outcomes(const Position& position) {
  std::vector<Action> actions;
  position.legal_actions(actions);
  std::vector<Outcome> outcomes;
  for (const Action action : actions) {
    const std::unique_ptr<Position> next = position.clone();
    next->play(action);
    outcomes.push_back(reversed(outcome(*next)));
  }
  return outcomes;
}

Outcome reversed(Outcome outcome) {
  if (outcome == Outcome::kDraw) return outcome;
  return outcome == Outcome::kWin ? Outcome::kLoss : Outcome::kWin;
}

std::unique_ptr<Solver> make_judge(std::string_view game) {
  if (game == "chess") return std::make_unique<MateInOneSolver>();
  return make_solver(game);
}

std::unique_ptr<Solver> make_solver(std::string_view game) {
  if (game == "tictactoe") return std::make_unique<TicTacToeSolver>();
  if (game == "connect4") return std::make_unique<Connect4Solver>();
  throw Error("[games] solver: expected a game with a solver, tictactoe or connect4, found {}", in_quotes(game));
}

}  // namespace quern::games
