#include "selfplay/match_game.h"

#include <algorithm>

#include "core/error.h"
#include "selfplay/move_choice.h"

namespace quern::selfplay {

games::Action RandomChooser::choose(const games::Position&, std::span<const games::Action> legal, RandomWords& words) {
  return legal[words.below(static_cast<uint32_t>(legal.size()))];
}

void MatchGame::start(const games::Position& opening, size_t beginner, uint64_t seed, uint64_t number) {
  position_ = opening.clone();
  mover_ = beginner;
  searching_ = false;
  seed_ = seed;
  number_ = number;
  for (MatchSide& side : sides_) {
    if (side.search) side.search->reset(opening);
  }
}

const games::Position* MatchGame::next_leaf() {
  while (!position_->over()) {
    MatchSide& side = sides_[mover_];
    if (side.search && !searching_) side.search->begin(side.simulations);
    searching_ = true;
    if (const games::Position* leaf = side.search ? side.search->next_leaf() : nullptr) return leaf;
    make_move(choose());
  }
  return nullptr;
}

games::Action MatchGame::choose() {
  MatchSide& side = sides_[mover_];
  if (side.search) return side.search->root_edges()[most_visited(side.search->root_edges())].action;
  position_->legal_actions(legal_);
  RandomWords words(move_stream(Purpose::kMatch, seed_, number_, static_cast<uint32_t>(position_->moves_played())));
  const games::Action action = side.chooser->choose(*position_, legal_, words);
  if (std::binary_search(legal_.begin(), legal_.end(), action)) return action;
  throw Error("[selfplay] match: expected a legal move from a player, found action {}", action);
}

void MatchGame::make_move(games::Action action) {
  for (MatchSide& side : sides_) {
    if (side.search) side.search->advance(action);
  }
  position_->play(action);
  mover_ = 1 - mover_;
  searching_ = false;
}

games::Outcome MatchGame::outcome() const {
  const games::Outcome outcome = position_->outcome();
  return mover_ == 0 ? outcome : games::flipped(outcome);
}

}  // namespace quern::selfplay
