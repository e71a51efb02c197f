#include "selfplay/random_opening.h"

#include <algorithm>

namespace quern::selfplay {

RandomOpening::RandomOpening(const games::Game& game, std::vector<games::Action>& moves) : game_(game), moves_(moves) {
  restart();
}

void RandomOpening::restart() {
  moves_.clear();
  position_ = game_.start();
  position_->legal_actions(legal_);
}

// From a random legal move on, the first one that does not end the game. False if there is none.
bool RandomOpening::step(RandomWords& words) {
  const uint32_t first = words.below(static_cast<uint32_t>(legal_.size()));
  for (size_t tried = 0; tried < legal_.size(); ++tried) {
    const games::Action action = legal_[(first + tried) % legal_.size()];
    if (position_->result_after(action)) continue;
    position_->play(action);
    moves_.push_back(action);
    position_->legal_actions(legal_);
    return true;
  }
  return false;
}

void RandomOpening::play(uint32_t count, RandomWords& words) {
  while (count > 0 && step(words)) --count;
}

bool RandomOpening::can_win() const {
  return std::ranges::any_of(
      legal_, [&](games::Action action) { return position_->result_after(action) == games::Outcome::kWin; });
}

bool RandomOpening::play_to_win(uint32_t most, RandomWords& words) {
  constexpr int kGames = 100;
  for (int game = 0; game < kGames; ++game) {
    const uint32_t least = words.below(most + 1);
    do {
      if (moves_.size() >= least && can_win()) return true;
    } while (step(words));
    restart();
  }
  return false;
}

}  // namespace quern::selfplay
