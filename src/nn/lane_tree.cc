#include "nn/lane_tree.h"

#include <algorithm>
#include <cassert>

namespace quern::nn {

LaneTree::LaneTree(size_t lanes, const Range& own) : own_(own), steps_(own.size()) {
  assert(own.begin < own.end && own.end <= lanes);
  find_nodes({0, lanes});
  for (size_t i = 0; i < nodes_.size(); ++i) add_up(nodes_[i], i);
}

void LaneTree::find_nodes(const Range& node) {
  if (node.end <= own_.begin || node.begin >= own_.end) return;
  if (node.begin >= own_.begin && node.end <= own_.end) return nodes_.push_back(node);
  find_nodes({node.begin, middle(node)});
  find_nodes({middle(node), node.end});
}

// The node's sum is left in `buffer`.
void LaneTree::add_up(const Range& node, size_t buffer) {
  buffers_ = std::max(buffers_, buffer + 1);
  if (node.size() == 1) {
    steps_[node.begin - own_.begin].buffer = buffer;
    return;
  }
  add_up({node.begin, middle(node)}, buffer);
  add_up({middle(node), node.end}, buffer + 1);
  ++steps_[node.end - 1 - own_.begin].merges;
}

}  // namespace quern::nn
