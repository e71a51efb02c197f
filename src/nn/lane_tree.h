// The order in which the gradients of a step's lanes are added.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

#include "core/range.h"

namespace quern::nn {

// A lane is a range of a step's sequences, whose gradient is summed in their order, starting from zero. The gradient of
// the step is the sum of its lanes by a binary tree that depends on their number alone: a node of n lanes is the sum of
// its first 2^k lanes, where 2^k is the largest power of two below n, and of the others. So lanes can be computed
// anywhere, and whoever has all lanes of a node can add them up; the bits of the result are the same.
//
// Lanes are computed in order with a stack of buffers: a lane is summed on top of it, and then the topmost buffers are
// added up as far as their nodes are complete.
class LaneTree {
 public:
  // For a process that computes the lanes `own` of 0 ... lanes - 1. Each node that these lanes complete, and whose
  // parent they do not, is left in a buffer of its own: 0, 1, ... in the order of the lanes.
  LaneTree(size_t lanes, const Range& own);
  explicit LaneTree(size_t lanes) : LaneTree(lanes, {0, lanes}) {}

  struct Step {
    size_t buffer = 0;  // in which the lane is summed
    size_t merges = 0;  // afterwards, as often: the topmost buffer is added to the one below it, and removed
  };
  const Step& operator[](size_t lane) const { return steps_[lane - own_.begin]; }
  // Where a node of more than one lane is divided.
  static size_t middle(const Range& node) { return node.begin + std::bit_floor(node.size() - 1); }
  const Range& own() const { return own_; }
  size_t buffers() const { return buffers_; }
  // The nodes that remain, each the lanes below it.
  const std::vector<Range>& nodes() const { return nodes_; }

 private:
  void find_nodes(const Range& node);
  void add_up(const Range& node, size_t buffer);

  Range own_;
  std::vector<Step> steps_;  // of the lanes in own_
  std::vector<Range> nodes_;
  size_t buffers_ = 0;
};

}  // namespace quern::nn
