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
  forget();
  simulations_ = 0;
}

void Search::forget() noexcept {
  tree_.clear();
  root_proof_ = Proof::kNone;
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
  if (tree_.empty()) {
    path_.clear();
    place_leaf();
    return leaf_.get();
  }
  while (simulations_ > 0 && root_proof_ == Proof::kNone) {
    --simulations_;
    if (descend()) {
      const Proof proof = tree_.edge(path_.back().edge).proof;
      back_up(Wdl::of(outcome_of(proof)), proof);
      continue;
    }
    place_leaf();
    if (leaf_proof_ == Proof::kNone) return leaf_.get();
    const Wdl value = Wdl::of(outcome_of(leaf_proof_));
    tree_.edge(path_.back().edge).child = tree_.add(leaf_actions_, leaf_proofs_, {}, value);
    back_up(value.flipped(), flipped(leaf_proof_));
  }
  return nullptr;
}

// Follows the best edges and notes them in path_. False below an edge that has no child yet, true at one whose result
// is certain.
bool Search::descend() noexcept {
  path_.clear();
  for (uint32_t node = 0; node != kNoNode;) {
    path_.push_back({node, select(tree_.node(node))});
    const Edge& edge = tree_.edge(path_.back().edge);
    if (edge.proof != Proof::kNone) return true;
    node = edge.child;
  }
  return false;
}

namespace {

// The sums of a move's simulations; those of a move that draws count what is certain.
float score_of(const Edge& edge) noexcept { return edge.proof == Proof::kDraw ? 0 : edge.score; }
float draws_of(const Edge& edge) noexcept {
  return edge.proof == Proof::kDraw ? static_cast<float>(edge.visits) : edge.draws;
}

}  // namespace

// Two passes over the moves, without those that lose. Of equal moves, the first. The node is not decided.
uint32_t Search::select(const Node& node) const noexcept {
  uint32_t visits = 0;
  float score = node.score, visited_prior = 0;
  const std::span<const Edge> edges = tree_.edges(node);
  for (const Edge& edge : edges) {
    if (edge.visits == 0 || edge.proof == Proof::kLoss) continue;
    visits += edge.visits;
    score += score_of(edge);
    visited_prior += edge.prior;
  }
  const float mean = score / static_cast<float>(1 + visits);
  const float unvisited = mean - settings_.fpu_reduction * std::sqrt(visited_prior);
  const float explore = settings_.c_puct * std::sqrt(static_cast<float>(std::max(visits, 1u)));
  size_t best = 0;
  float best_value = -INFINITY;
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (edge.proof == Proof::kLoss) continue;
    const auto n = static_cast<float>(edge.visits);
    const float value = (edge.visits == 0 ? unvisited : score_of(edge) / n) + explore * edge.prior / (1 + n);
    if (value > best_value) best = i, best_value = value;
  }
  return node.first_edge + static_cast<uint32_t>(best);
}

void Search::place_leaf() {
  leaf_ = root_->clone();
  for (const Step& step : path_) leaf_->play(tree_.edge(step.edge).action);
  leaf_->legal_actions(leaf_actions_);
  prove_moves();
}

// Of the leaf's moves, those that end the game.
void Search::prove_moves() {
  ProofOfMoves moves;
  leaf_proofs_.resize(leaf_actions_.size());
  for (size_t i = 0; i < leaf_actions_.size(); ++i) {
    leaf_proofs_[i] = proof_of(leaf_->result_after(leaf_actions_[i]));
    moves.add(leaf_proofs_[i]);
  }
  leaf_proof_ = moves.result();
}

void Search::take(std::span<const float> priors, const Wdl& value) {
  assert(priors.size() == leaf_actions_.size());
  if (path_.empty() && simulations_ == 0) forget_proofs();
  const uint32_t node = tree_.add(leaf_actions_, leaf_proofs_, priors, value);
  if (path_.empty()) {
    root_proof_ = leaf_proof_;
    return add_noise();
  }
  tree_.edge(path_.back().edge).child = node;
  back_up(value.flipped(), Proof::kNone);
}

// Without simulations, the network alone decides.
void Search::forget_proofs() noexcept {
  std::ranges::fill(leaf_proofs_, Proof::kNone);
  leaf_proof_ = Proof::kNone;
}

Proof Search::proof_of_moves(const Node& node) const noexcept {
  ProofOfMoves moves;
  for (const Edge& edge : tree_.edges(node)) moves.add(edge.proof);
  return moves.result();
}

// Value and proof are for the player who made the last move of the path. Where the proof decides a position, its result
// is what counts from there to the root.
void Search::back_up(const Wdl& value, Proof proof) noexcept {
  float score = value.score(), draw = value.draw;
  for (size_t i = path_.size(); i-- > 0; score = -score) {
    Edge& edge = tree_.edge(path_[i].edge);
    ++edge.visits;
    edge.score += score;
    edge.draws += draw;
    if (proof == Proof::kNone) continue;
    edge.proof = proof;
    const Proof node = proof_of_moves(tree_.node(path_[i].node));
    if (node != Proof::kNone) {
      const Wdl exact = Wdl::of(outcome_of(node));
      score = exact.score(), draw = exact.draw;
    }
    if (i == 0) root_proof_ = node;
    proof = flipped(node);
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
  if (root_proof_ != Proof::kNone) return Wdl::of(outcome_of(root_proof_));
  float score = tree_.node(0).score, draws = tree_.node(0).draw, count = 1;
  for (const Edge& edge : root_edges()) {
    if (edge.proof == Proof::kLoss) continue;
    score += score_of(edge), draws += draws_of(edge), count += static_cast<float>(edge.visits);
  }
  const float decided = 1 - draws / count;
  return {(decided + score / count) / 2, draws / count, (decided - score / count) / 2};
}

std::vector<games::Action> Search::line(size_t limit) const {
  std::vector<games::Action> moves;
  uint32_t node = tree_.empty() ? kNoNode : 0;
  while (node != kNoNode && moves.size() < limit) {
    const std::span<const Edge> edges = tree_.edges(tree_.node(node));
    const Edge& best = edges[most_visited(edges)];
    if (best.visits == 0 && !moves.empty()) break;
    moves.push_back(best.action);
    node = best.child;
  }
  return moves;
}

std::vector<games::Action> Search::line_to_end() const {
  if (root_proof_ == Proof::kNone || root_proof_ == Proof::kDraw) return {};
  return line_to_end(0, root_proof_);
}

// A proven move without a child ends the game.
std::vector<games::Action> Search::line_to_end(uint32_t node, Proof proof) const {
  std::vector<games::Action> best;
  for (const Edge& edge : tree_.edges(tree_.node(node))) {
    if (edge.proof != proof) continue;
    std::vector<games::Action> line = {edge.action};
    if (edge.child != kNoNode) {
      const std::vector<games::Action> rest = line_to_end(edge.child, flipped(proof));
      line.insert(line.end(), rest.begin(), rest.end());
    }
    const bool better = proof == Proof::kWin ? line.size() < best.size() : line.size() > best.size();
    if (best.empty() || better) best = std::move(line);
  }
  return best;
}

void Search::advance(games::Action action) {
  const std::span<const Edge> edges = root_edges();
  const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.action == action; });
  const uint32_t child = edge == edges.end() ? kNoNode : edge->child;
  if (child != kNoNode && settings_.reuse_tree) {
    tree_.keep_subtree(child);
    root_proof_ = proof_of_moves(tree_.node(0));
  } else {
    forget();
  }
  root_->play(action);
}

}  // namespace quern::selfplay
