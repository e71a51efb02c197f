// Random moves at the beginning of a game.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "games/game.h"
#include "selfplay/random_words.h"

namespace quern::selfplay {

// Begins at the start of a game. Moves that end the game are never made.
class RandomOpening {
 public:
  // Moves are added to `moves`, which must outlive this object.
  RandomOpening(const games::Game& game, std::vector<games::Action>& moves);

  // Makes `count` moves, or as many as there are that do not end the game.
  void play(uint32_t count, RandomWords& words);

  // Makes moves to a position where a move wins, after at least a number of moves that is drawn from 0 to `most`.
  // Begins again when a game has no such position. False, and at the start, if none of 100 games has one.
  bool play_to_win(uint32_t most, RandomWords& words);

  std::unique_ptr<games::Position> take() { return std::move(position_); }

 private:
  bool step(RandomWords& words);
  bool can_win() const;
  void restart();

  const games::Game& game_;
  std::vector<games::Action>& moves_;
  std::unique_ptr<games::Position> position_;
  std::vector<games::Action> legal_;  // where position_ is
};

}  // namespace quern::selfplay
