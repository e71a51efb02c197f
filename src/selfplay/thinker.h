// A network that thinks about one position at a time: to play against a person or another program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "games/game.h"
#include "selfplay/model.h"
#include "selfplay/search.h"

namespace quern::selfplay {

// One thread.
class Thinker {
 public:
  Thinker(const games::GameSpec& spec, std::shared_ptr<const Model> model, const SearchSettings& settings);

  // The same in parts, for a search that goes on: makes a copy of a position the root, where the game must not be over;
  // makes a legal move at the root and keeps what was found about the position after it; searches with that many more
  // simulations.
  void set(const games::Position& position) { search_.reset(position); }
  void advance(games::Action action) { search_.advance(action); }
  const Search& search_more(uint32_t simulations, const std::function<bool(const Search& search)>& stop = {});
  const Search& search() const noexcept { return search_; }

  // Searches a position, where the game must not be over, without what earlier searches found. Ends after the
  // simulations or, once the position itself was evaluated, as soon as `stop` says so, which is asked after each
  // evaluation. The result is valid until the next call.
  const Search& think(const games::Position& position, uint32_t simulations,
                      const std::function<bool(const Search& search)>& stop = {});

 private:
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Evaluator> evaluator_;
  Search search_;
  std::vector<float> planes_, logits_, priors_;
};

// A legal move, with what a search found about it.
struct RankedMove {
  games::Action action = 0;
  double share = 0;  // of the visits
  Wdl value;         // for the player who makes it; that of the position if it was never visited
};

// All legal moves, the best one first: one that is proven to win, then the most visited, then that with the highest
// prior; at last those that are proven to lose.
std::vector<RankedMove> ranked_moves(const Search& search);

}  // namespace quern::selfplay
