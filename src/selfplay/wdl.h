// How a game ends, or is expected to end.
#pragma once

#include "games/game.h"

namespace quern::selfplay {

// The probabilities of a win, a draw and a loss, for one of the players.
struct Wdl {
  float win = 0, draw = 0, loss = 0;

  // The expected result, where a win counts 1, a draw 0 and a loss -1.
  float score() const noexcept { return win - loss; }
  // The same for the other player.
  Wdl flipped() const noexcept { return {loss, draw, win}; }

  // A result that is certain.
  static Wdl of(games::Outcome outcome) noexcept {
    return {outcome == games::Outcome::kWin ? 1.0f : 0.0f, outcome == games::Outcome::kDraw ? 1.0f : 0.0f,
            outcome == games::Outcome::kLoss ? 1.0f : 0.0f};
  }

  bool operator==(const Wdl&) const = default;
};

}  // namespace quern::selfplay
