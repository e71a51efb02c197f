// Perfect play, to judge a network by.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "games/game.h"

namespace quern::games {

// Keeps what it has computed: one thread at a time. Positions must be of the solver's game.
class Solver {
 public:
  virtual ~Solver() = default;

  // The result for the player to move if both play perfectly from here; that of the game if it is over.
  virtual Outcome outcome(const Position& position) = 0;

  // Whether outcome() is at least `wanted`: kDraw means that the player to move does not lose. May take less time.
  virtual bool reaches(const Position& position, Outcome wanted) { return outcome(position) >= wanted; }

  // outcome() for the player to move after each of its legal moves, in the order of legal_actions().
  std::vector<Outcome> action_outcomes(const Position& position);
};

// The same result for the other player.
Outcome reversed(Outcome outcome);

// The solver of a game that has one: tictactoe or connect4. Error for another name.
std::unique_ptr<Solver> make_solver(std::string_view game);

// What judges moves in the positions of test_sets.h: the solver of a game that has one; for chess, whose positions have
// a mate in one, MateInOneSolver. Error for another name.
std::unique_ptr<Solver> make_judge(std::string_view game);

}  // namespace quern::games
