// The position that `position` sets up, and the way to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "games/game.h"

namespace quern::cli {

// Quern ends a game at once that FIDE lets a player claim as drawn: by the third occurrence of a position, fifty moves,
// or 512 moves. An interface may play on. The position is then one that knows nothing of the moves before it, with the
// count of moves without a capture or pawn move at 0.
class UciGame {
 public:
  explicit UciGame(const games::Game& game) : game_(game), position_(game.start()) {}

  // Reads what follows "position": "startpos" or "fen FEN", then "moves" and moves. Error that says what is wrong; this
  // game is then as it was.
  void read(std::string_view text);

  // The game may be over here.
  const games::Position& position() const { return *position_; }
  // The same, or if a draw has ended the game and the interface plays on, the board in a game that begins there. Over
  // where there is no legal move, or too few pieces to mate.
  std::unique_ptr<games::Position> searched_position() const;

  // The moves that lead from a position of this game with this hash to position(), the newest such position. False if
  // there is none.
  bool moves_from(uint64_t hash, std::vector<games::Action>& moves) const;

 private:
  struct Step {
    uint64_t hash;  // of the position before
    games::Action action;
  };

  void play(std::string_view move);

  const games::Game& game_;
  std::unique_ptr<games::Position> position_;
  std::vector<Step> steps_;
};

// Whether a move is legal, also where a draw has ended the game: as text. Empty if there is none: mate or stalemate.
std::vector<std::string> uci_moves(const games::Position& position);

}  // namespace quern::cli
