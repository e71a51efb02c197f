// The tree of a search: nodes and their moves, in two arrays that are kept between searches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "selfplay/proof.h"
#include "selfplay/wdl.h"

namespace quern::selfplay {

inline constexpr uint32_t kNoNode = 0xFFFFFFFF;

// A legal move of a position. The sums are over the simulations that went through it, for the player who makes it.
struct Edge {
  float prior = 0;
  uint32_t visits = 0;
  float score = 0;           // sum of scores
  float draws = 0;           // sum of probabilities of a draw
  uint32_t child = kNoNode;  // until the first visit that does not end the game
  games::Action action = 0;
  Proof proof = Proof::kNone;  // the result, if it is certain, for the player who makes the move
};
static_assert(sizeof(Edge) == 24);

// A position that was evaluated, or whose moves decided it first; then the priors are 0, and no simulation goes there.
// The value is for the player to move.
struct Node {
  uint32_t first_edge = 0;
  uint32_t edges = 0;
  float score = 0;
  float draw = 0;
};

// One thread. Allocates only while it grows beyond the largest size it has had.
class Tree {
 public:
  bool empty() const noexcept { return nodes_.empty(); }
  size_t nodes() const noexcept { return nodes_.size(); }

  const Node& node(uint32_t index) const noexcept { return nodes_[index]; }
  Edge& edge(uint32_t index) noexcept { return edges_[index]; }
  std::span<Edge> edges(const Node& node) noexcept { return {edges_.data() + node.first_edge, node.edges}; }
  std::span<const Edge> edges(const Node& node) const noexcept { return {edges_.data() + node.first_edge, node.edges}; }

  // Adds a node; the first one is the root, number 0. `actions` have a prior and a proof each; without priors, all of
  // them are 0. Moves nodes and edges in memory.
  uint32_t add(std::span<const games::Action> actions, std::span<const Proof> proofs, std::span<const float> priors,
               const Wdl& value);

  // Frees all nodes that are not below `root`, which becomes number 0. Time in proportion to what stays.
  void keep_subtree(uint32_t root);

  void clear() noexcept;

 private:
  std::vector<Node> nodes_, other_nodes_;
  std::vector<Edge> edges_, other_edges_;
};

}  // namespace quern::selfplay
