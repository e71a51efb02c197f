#include "nn/lane_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

namespace quern::nn {
namespace {

// The tree by its definition, as an expression.
std::string expression(const Range& node) {
  if (node.size() == 1) return std::to_string(node.begin);
  size_t half = 1;
  while (2 * half < node.size()) half *= 2;
  return "(" + expression({node.begin, node.begin + half}) + "+" + expression({node.begin + half, node.end}) + ")";
}

// Every node of the tree, whether or not it belongs to some process.
void add_nodes(const Range& node, std::vector<Range>& out) {
  out.push_back(node);
  if (node.size() == 1) return;
  size_t half = 1;
  while (2 * half < node.size()) half *= 2;
  add_nodes({node.begin, node.begin + half}, out);
  add_nodes({node.begin + half, node.end}, out);
}

// What the buffers contain after all lanes of the tree.
std::vector<std::string> computed(const LaneTree& tree) {
  std::vector<std::string> buffers;
  for (size_t lane = tree.own().begin; lane < tree.own().end; ++lane) {
    EXPECT_EQ(tree[lane].buffer, buffers.size());
    buffers.push_back(std::to_string(lane));
    EXPECT_LE(buffers.size(), tree.buffers());
    for (size_t i = 0; i < tree[lane].merges; ++i) {
      const std::string top = buffers.back();
      buffers.pop_back();
      buffers.back() = "(" + buffers.back() + "+" + top + ")";
    }
  }
  return buffers;
}

TEST(LaneTree, AddsAllLanesByTheTree) {
  for (size_t lanes = 1; lanes <= 70; ++lanes) {
    const LaneTree tree(lanes);
    EXPECT_EQ(computed(tree), std::vector{expression({0, lanes})});
    if (std::has_single_bit(lanes)) {
      EXPECT_EQ(tree.buffers(), static_cast<size_t>(std::bit_width(lanes)));
    }
    EXPECT_LE(tree.buffers(), static_cast<size_t>(std::bit_width(lanes - 1)) + 1);
  }
}

// Any process with a range of the lanes has the largest nodes in it, each as the whole tree computes it.
TEST(LaneTree, AddsAnyRangeToTheLargestNodes) {
  for (size_t lanes = 1; lanes <= 20; ++lanes) {
    std::vector<Range> all;
    add_nodes({0, lanes}, all);
    for (size_t begin = 0; begin < lanes; ++begin) {
      for (size_t end = begin + 1; end <= lanes; ++end) {
        const LaneTree tree(lanes, {begin, end});
        std::vector<std::string> expected;
        size_t next = begin;
        for (const Range& node : tree.nodes()) {
          EXPECT_EQ(node.begin, next);
          next = node.end;
          for (const Range& other : all) {  // none within the range is larger
            if (other.begin < begin || other.end > end) continue;
            EXPECT_FALSE(other.begin <= node.begin && other.end >= node.end && other.size() > node.size());
          }
          expected.push_back(expression(node));
        }
        EXPECT_EQ(next, end);
        EXPECT_EQ(computed(tree), expected);
      }
    }
  }
}

}  // namespace
}  // namespace quern::nn
