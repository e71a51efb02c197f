// PUCT search of one position, as a state machine: it hands out positions to be evaluated and takes the evaluations
// back, so that one thread can run hundreds of searches and evaluate a leaf of each in one batch.
//
//   search.reset(position);
//   search.begin(100);
//   while (const games::Position* leaf = search.next_leaf()) {
//     ...evaluate leaf...
//     search.take(priors of search.leaf_actions(), value);
//   }
//   search.root_edges()                          visits of each move
//   search.advance(action); search.begin(100);   the next move
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/philox.h"
#include "selfplay/settings.h"
#include "selfplay/tree.h"

namespace quern::selfplay {

// Dirichlet noise for the priors of a root; share 0 for none.
struct RootNoise {
  float share = 0;
  float alpha = 1;
  RandomStream stream = {};
  uint32_t first_block = 0;  // of the stream
};

// Results that are certain are not estimated. A position whose moves include one that wins the game at once is never
// evaluated; a result that follows from those of all moves goes up the tree; a move that is proven to lose is not
// searched while there are others; and a search ends when its root is decided.
//
// A tree has at most one leaf in flight: no simulation starts before the one before it is counted. So the result is a
// function of the position, the evaluations, the settings and the noise, no matter what else a batch contains, and no
// virtual loss is needed. One thread. It allocates only while the tree grows beyond its largest size so far, apart from
// one Position::clone() for each leaf.
class Search {
 public:
  explicit Search(const SearchSettings& settings);

  // Makes a copy of `root` the root, and forgets the tree. The game must not be over there.
  void reset(const games::Position& root);

  // Starts a search of `simulations` in addition to those that are kept from earlier searches. The evaluation of a root
  // that has none does not count; with 0 simulations, nothing is proven of it. The game must not be over at the root.
  void begin(uint32_t simulations, const RootNoise& noise = {});

  // Runs simulations until one needs an evaluation: of the returned position, which is valid until the next call of a
  // function that is not const. Null when the search is done. Call take() before it is called again. A root without an
  // evaluation always needs one.
  const games::Position* next_leaf();
  std::span<const games::Action> leaf_actions() const noexcept { return leaf_actions_; }

  // The evaluation of the leaf: a prior for each of leaf_actions(), and the value for the player to move.
  void take(std::span<const float> priors, const Wdl& value);

  const games::Position& position() const noexcept { return *root_; }

  // The legal moves at the root, in ascending order; empty if it has not been evaluated.
  std::span<const Edge> root_edges() const noexcept;
  uint32_t root_visits() const noexcept;  // the sum over root_edges()
  // The value of the root for the player to move: its proof, or the mean over its evaluation and all simulations but
  // those of moves that are proven to lose.
  Wdl root_value() const noexcept;
  // Of the root; kNone before its evaluation.
  Proof root_proof() const noexcept { return root_proof_; }
  size_t nodes() const noexcept { return tree_.nodes(); }
  // The line that the search expects: the most visited moves from the root on, at most `limit`. The first one is the
  // move to play, even without visits; empty if the root has not been evaluated.
  std::vector<games::Action> line(size_t limit) const;

  // With a root that is proven to be won or lost: the moves to the end of the game, where the winner takes the shortest
  // proven way and the loser the longest. Otherwise none.
  std::vector<games::Action> line_to_end() const;

  // Makes a legal move at the root. The subtree of the move becomes the tree if the settings say so, with all its
  // visits and values; the rest is freed.
  void advance(games::Action action);

 private:
  void forget() noexcept;
  uint32_t select(const Node& node) const noexcept;
  bool descend() noexcept;
  void place_leaf();
  void prove_moves();
  void forget_proofs() noexcept;
  Proof proof_of_moves(const Node& node) const noexcept;
  std::vector<games::Action> line_to_end(uint32_t node, Proof proof) const;
  void back_up(const Wdl& value, Proof proof) noexcept;
  void add_noise();

  SearchSettings settings_;
  Tree tree_;
  std::unique_ptr<games::Position> root_, leaf_;
  std::vector<games::Action> leaf_actions_;
  std::vector<Proof> leaf_proofs_;  // of its actions
  Proof leaf_proof_ = Proof::kNone;
  Proof root_proof_ = Proof::kNone;
  struct Step {
    uint32_t node, edge;
  };
  std::vector<Step> path_;      // from the root to the leaf
  std::vector<double> shares_;  // of the noise
  uint32_t simulations_ = 0;    // still to start
  RootNoise noise_;             // to be added when the root has priors; share 0 afterwards
};

}  // namespace quern::selfplay
