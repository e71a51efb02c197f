#include "selfplay/tree.h"

#include "core/error.h"

namespace quern::selfplay {

uint32_t Tree::add(std::span<const games::Action> actions, std::span<const Proof> proofs, std::span<const float> priors,
                   const Wdl& value) {
  if (edges_.size() + actions.size() >= kNoNode) throw Error("[selfplay] a search tree has too many moves");
  const auto first = static_cast<uint32_t>(edges_.size());
  for (size_t i = 0; i < actions.size(); ++i) {
    edges_.push_back({.prior = priors.empty() ? 0 : priors[i], .action = actions[i], .proof = proofs[i]});
  }
  nodes_.push_back({first, static_cast<uint32_t>(actions.size()), value.score(), value.draw});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

// Breadth first. A copied node refers to its edges in the old array until its turn comes.
void Tree::keep_subtree(uint32_t root) {
  other_nodes_.clear();
  other_edges_.clear();
  other_nodes_.push_back(nodes_[root]);
  for (size_t i = 0; i < other_nodes_.size(); ++i) {
    const Node node = other_nodes_[i];
    other_nodes_[i].first_edge = static_cast<uint32_t>(other_edges_.size());
    for (Edge edge : edges(node)) {
      if (edge.child != kNoNode) {
        other_nodes_.push_back(nodes_[edge.child]);
        edge.child = static_cast<uint32_t>(other_nodes_.size() - 1);
      }
      other_edges_.push_back(edge);
    }
  }
  nodes_.swap(other_nodes_);
  edges_.swap(other_edges_);
}

void Tree::clear() noexcept {
  nodes_.clear();
  edges_.clear();
}

}  // namespace quern::selfplay
