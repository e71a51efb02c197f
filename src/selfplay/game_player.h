// One game of self-play: a search for every move, until the game is over or its result is certain. A state machine like
// Search.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "selfplay/game_record.h"
#include "selfplay/search.h"

namespace quern::selfplay {

// The record is a function of the settings, the seed, the number of the game and the evaluations. One thread.
class GamePlayer {
 public:
  // The game must outlive the player. Error for settings that check() refuses.
  GamePlayer(const games::Game& game, const PlaySettings& settings);

  // Starts game `number`, below kMaxGames, to be played with the weights of `version`, which is only noted.
  void start(uint64_t seed, uint64_t number, uint64_t version);

  // Plays until a position needs an evaluation, and returns it. Null when the game is over.
  const games::Position* next_leaf();
  std::span<const games::Action> leaf_actions() const noexcept { return search_.leaf_actions(); }
  void take(std::span<const float> priors, const Wdl& value) { search_.take(priors, value); }

  // Of the finished game, until start(). The caller may move it away, or better swap it with an old one.
  GameRecord& record() noexcept { return record_; }

 private:
  std::unique_ptr<games::Position> open();
  void begin_move();
  void finish_move();
  void record_position();
  games::Action choose() const;
  bool resigns() const;
  void finish_game(games::Outcome outcome, int player);
  RandomStream stream(size_t move) const noexcept;

  const games::Game& game_;
  PlaySettings settings_;
  Search search_;
  GameRecord record_;
  std::vector<uint8_t> movers_;  // of the rows
  std::vector<float> shares_;    // of the moves of a row
  uint64_t seed_ = 0;
  bool over_ = true;
  bool full_ = false;        // the current search
  bool winning_ = false;     // the game began where a move wins
  bool may_resign_ = false;  // this game
};

}  // namespace quern::selfplay
