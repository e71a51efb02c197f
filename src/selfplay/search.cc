#include "selfplay/search.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "selfplay/dirichlet.h"
#include "selfplay/move_choice.h"

namespace quern::selfplay {

Search::Search(const SearchSettings& settings) : settings_(settings) { check(settings); }

void Search::reset(const games::Position& root) {
  assert(!root.over());
  root_ = root.clone();
  tree_.clear();
  simulations_ = 0;
}

void Search::begin(uint32_t simulations, const RootNoise& noise) {
  assert(root_ != nullptr && !root_->over());
  simulations_ = simulations;
  noise_ = noise;
  if (!tree_.empty()) add_noise();
}

void Search::add_noise() {
  if (noise_.share == 0) return;
  const std::span<Edge> edges = tree_.edges(tree_.node(0));
  RandomWords words(noise_.stream, noise_.first_block);
  shares_.resize(edges.size());
  draw_dirichlet(noise_.alpha, shares_, words);
  for (size_t i = 0; i < edges.size(); ++i) {
    edges[i].prior = (1 - noise_.share) * edges[i].prior + noise_.share * static_cast<float>(shares_[i]);
  }
  noise_.share = 0;
}

const games::Position* Search::next_leaf() {
  path_.clear();
  if (tree_.empty()) {
    place_leaf();
    return leaf_.get();
  }
  while (simulations_ > 0) {
    --simulations_;
    const uint32_t end = descend();
    if (end == kNoNode) place_leaf();
    if (end == kNoNode && !leaf_->over()) return leaf_.get();
    const uint32_t terminal = end != kNoNode ? end : tree_.add({}, {}, Wdl::of(leaf_->outcome()));
    tree_.edge(path_.back()).child = terminal;
    back_up(tree_.node(terminal).score, tree_.node(terminal).draw);
  }
  return nullptr;
}

// Follows the best edges and notes them in path_. Returns the terminal node it arrives at, or kNoNode below an edge
// that has no child yet.
uint32_t Search::descend() noexcept {
  path_.clear();
  for (uint32_t node = 0; node != kNoNode;) {
    if (tree_.node(node).terminal()) return node;
    path_.push_back(select(tree_.node(node)));
    node = tree_.edge(path_.back()).child;
  }
  return kNoNode;
}

// Two passes over the moves. Of equal moves, the first.
uint32_t Search::select(const Node& node) const noexcept {
  uint32_t visits = 0;
  float score = node.score, visited_prior = 0;
  const std::span<const Edge> edges = tree_.edges(node);
  for (const Edge& edge : edges) {
    if (edge.visits == 0) continue;
    visits += edge.visits;
    score += edge.score;
    visited_prior += edge.prior;
  }
  const float mean = score / static_cast<float>(1 + visits);
  const float unvisited = mean - settings_.fpu_reduction * std::sqrt(visited_prior);
  const float explore = settings_.c_puct * std::sqrt(static_cast<float>(std::max(visits, 1u)));
  size_t best = 0;
  float best_value = -INFINITY;
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    const auto n = static_cast<float>(edge.visits);
    const float value = (edge.visits == 0 ? unvisited : edge.score / n) + explore * edge.prior / (1 + n);
    if (value > best_value) best = i, best_value = value;
  }
  return node.first_edge + static_cast<uint32_t>(best);
}

void Search::place_leaf() {
  leaf_ = root_->clone();
  for (const uint32_t edge : path_) leaf_->play(tree_.edge(edge).action);
  leaf_->legal_actions(leaf_actions_);
}

void Search::take(std::span<const float> priors, const Wdl& value) {
  assert(priors.size() == leaf_actions_.size());
  const uint32_t node = tree_.add(leaf_actions_, priors, value);
  if (path_.empty()) return add_noise();
  tree_.edge(path_.back()).child = node;
  back_up(value.score(), value.draw);
}

// `score` is for the player to move at the leaf: the opponent of the one who made the last move of the path.
void Search::back_up(float score, float draw) noexcept {
  for (size_t i = path_.size(); i-- > 0;) {
    score = -score;
    Edge& edge = tree_.edge(path_[i]);
    ++edge.visits;
    edge.score += score;
    edge.draws += draw;
  }
}

std::span<const Edge> Search::root_edges() const noexcept {
  return tree_.empty() ? std::span<const Edge>() : tree_.edges(tree_.node(0));
}

uint32_t Search::root_visits() const noexcept {
  uint32_t visits = 0;
  for (const Edge& edge : root_edges()) visits += edge.visits;
  return visits;
}

Wdl Search::root_value() const noexcept {
  float score = tree_.node(0).score, draws = tree_.node(0).draw;
  for (const Edge& edge : root_edges()) score += edge.score, draws += edge.draws;
  const float count = 1 + static_cast<float>(root_visits());
  const float decided = 1 - draws / count;
  return {(decided + score / count) / 2, draws / count, (decided - score / count) / 2};
}

std::vector<games::Action> Search::line(size_t limit) const {
  std::vector<games::Action> moves;
  uint32_t node = tree_.empty() ? kNoNode : 0;
  while (node != kNoNode && !tree_.node(node).terminal() && moves.size() < limit) {
    const std::span<const Edge> edges = tree_.edges(tree_.node(node));
    const Edge& best = edges[most_visited(edges)];
    if (best.visits == 0 && !moves.empty()) break;
    moves.push_back(best.action);
    node = best.child;
  }
  return moves;
}

void Search::advance(games::Action action) {
  const std::span<const Edge> edges = root_edges();
  const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.action == action; });
  const uint32_t child = edge == edges.end() ? kNoNode : edge->child;
  if (child != kNoNode && settings_.reuse_tree && !tree_.node(child).terminal()) {
    tree_.keep_subtree(child);
  } else {
    tree_.clear();
  }
  root_->play(action);
}

}  // namespace quern::selfplay
