// Runs a search alone, and games alone: what batches are compared with.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "fake_models.h"
#include "selfplay/game_player.h"
#include "selfplay/priors.h"
#include "selfplay/search.h"

namespace quern::selfplay::test {

// Evaluates one leaf.
template <typename Searching>
void evaluate(Searching& search, const games::Position& leaf, const games::GameSpec& spec, Evaluator& evaluator) {
  std::vector<float> planes(spec.planes * spec.squares()), logits(spec.actions), outcome(3);
  leaf.write_planes(planes);
  evaluator.evaluate(1, planes.data(), logits.data(), outcome.data());
  std::vector<float> priors(search.leaf_actions().size());
  write_priors(logits, search.leaf_actions(), priors);
  search.take(priors, read_outcome(outcome));
}

// Until the search is done, or the game of a GamePlayer.
template <typename Searching>
void run(Searching& search, const games::Game& game, const Model& model) {
  const std::unique_ptr<Evaluator> evaluator = model.make_evaluator(1);
  while (const games::Position* leaf = search.next_leaf()) evaluate(search, *leaf, game.spec(), *evaluator);
}

inline std::map<games::Action, uint32_t> visits(const Search& search) {
  std::map<games::Action, uint32_t> found;
  for (const Edge& edge : search.root_edges()) found[edge.action] = edge.visits;
  return found;
}

inline GameRecord play_alone(const games::Game& game, const PlaySettings& settings, const Model& model, uint64_t seed,
                             uint64_t number, uint64_t version = 0) {
  GamePlayer player(game, settings);
  player.start(seed, number, version);
  run(player, game, model);
  return player.record();
}

}  // namespace quern::selfplay::test
