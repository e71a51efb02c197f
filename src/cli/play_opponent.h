// Whom a person plays against in the terminal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "games/game.h"
#include "selfplay/match_player.h"

namespace quern::cli {

// One thread.
class PlayOpponent {
 public:
  virtual ~PlayOpponent() = default;

  virtual const std::string& name() const = 0;

  struct Choice {
    games::Action action = 0;
    std::string estimate;  // of the result, from the opponent's side; empty for none
  };
  // A move in a position where the game is not over.
  virtual Choice choose(const games::Position& position) = 0;
  // Lines about the best moves for the player to move.
  virtual std::string hint(const games::Position& position) = 0;
};

// The network of a run, RUN@STEP or a checkpoint, and its game. `game` is the expected one, or empty.
struct OpponentOfGame {
  std::shared_ptr<const games::Game> game;
  std::unique_ptr<PlayOpponent> opponent;
};
OpponentOfGame network_opponent(const std::string& run, const std::string& game, uint64_t simulations);

// Perfect play. Error for a game without a solver.
OpponentOfGame perfect_opponent(const std::string& game);

}  // namespace quern::cli
