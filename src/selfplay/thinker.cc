#include "selfplay/thinker.h"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include "selfplay/priors.h"

namespace quern::selfplay {
namespace {

Wdl value_of(const Edge& edge, const Wdl& position) {
  if (edge.proof != Proof::kNone) return Wdl::of(outcome_of(edge.proof));
  if (edge.visits == 0) return position;
  const auto visits = static_cast<float>(edge.visits);
  const float score = edge.score / visits, draw = edge.draws / visits;
  return {(1 - draw + score) / 2, draw, (1 - draw - score) / 2};
}

}  // namespace

Thinker::Thinker(const games::GameSpec& spec, std::shared_ptr<const Model> model, const SearchSettings& settings)
    : model_(std::move(model)),
      evaluator_(model_->make_evaluator(1)),
      search_(settings),
      planes_(spec.planes * spec.squares()),
      logits_(spec.actions),
      priors_(spec.actions) {}

const Search& Thinker::think(const games::Position& position, uint32_t simulations,
                             const std::function<bool(const Search& search)>& stop) {
  set(position);
  return search_more(simulations, stop);
}

const Search& Thinker::search_more(uint32_t simulations, const std::function<bool(const Search& search)>& stop) {
  search_.begin(simulations);
  while (const games::Position* leaf = search_.next_leaf()) {
    std::array<float, 3> outcome{};
    leaf->write_planes(planes_);
    evaluator_->evaluate(1, planes_.data(), logits_.data(), outcome.data());
    const std::span<float> priors(priors_.data(), search_.leaf_actions().size());
    write_priors(logits_, search_.leaf_actions(), priors);
    search_.take(priors, read_outcome(outcome));
    if (stop && stop(search_)) break;
  }
  return search_;
}

std::vector<RankedMove> ranked_moves(const Search& search) {
  std::vector<Edge> edges(search.root_edges().begin(), search.root_edges().end());
  const auto rank = [](const Edge& edge) {  // what is certain, before visits
    return std::tuple(edge.proof == Proof::kWin, edge.proof != Proof::kLoss, edge.visits, edge.prior);
  };
  std::ranges::stable_sort(edges, std::ranges::greater(), rank);
  const double visits = std::max<uint32_t>(search.root_visits(), 1);
  std::vector<RankedMove> moves;
  for (const Edge& edge : edges) {
    moves.push_back({edge.action, static_cast<double>(edge.visits) / visits, value_of(edge, search.root_value())});
  }
  return moves;
}

}  // namespace quern::selfplay
