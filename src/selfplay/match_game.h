// One game of a match, as a state machine like Search.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "selfplay/match_player.h"
#include "selfplay/search.h"

namespace quern::selfplay {

// One side of a game: a search, or a chooser that belongs to the thread.
struct MatchSide {
  std::optional<Search> search;
  uint32_t simulations = 0;
  MoveChooser* chooser = nullptr;
};

// One thread.
class MatchGame {
 public:
  // The sides of player 0 and player 1 of the match, whoever begins a game.
  explicit MatchGame(std::array<MatchSide, 2> sides) : sides_(std::move(sides)) {}

  // Starts game `number` from a position where it is not over. `beginner` is the player of the match whose turn it is.
  void start(const games::Position& opening, size_t beginner, uint64_t seed, uint64_t number);

  // Plays until a search needs an evaluation, and returns the position. Null when the game is over.
  const games::Position* next_leaf();
  size_t leaf_player() const noexcept { return mover_; }  // of the match: whose search
  std::span<const games::Action> leaf_actions() const noexcept { return sides_[mover_].search->leaf_actions(); }
  void take(std::span<const float> priors, const Wdl& value) { sides_[mover_].search->take(priors, value); }

  // Of the game that is over, for player 0 of the match.
  games::Outcome outcome() const;

 private:
  games::Action choose();
  void make_move(games::Action action);

  std::array<MatchSide, 2> sides_;
  std::unique_ptr<games::Position> position_;
  std::vector<games::Action> legal_;
  size_t mover_ = 0;        // the player of the match whose turn it is
  bool searching_ = false;  // for the current move
  uint64_t seed_ = 0, number_ = 0;
};

}  // namespace quern::selfplay
