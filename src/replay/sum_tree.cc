#include "replay/sum_tree.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/cache_line.h"
#include "core/error.h"

namespace quern::replay {
namespace {

constexpr auto kOrder = std::memory_order_seq_cst;  // see the proof in the header
constexpr double kUnitsPerOne = 1 << 24;

static_assert(sizeof(std::atomic<uint64_t>) * SumTree::kChildren == kCacheLine);
static_assert(std::atomic<uint64_t>::is_always_lock_free);  // required between processes

uint64_t parents_of(uint64_t nodes) { return nodes / SumTree::kChildren + (nodes % SumTree::kChildren != 0 ? 1 : 0); }

}  // namespace

uint64_t SumTree::words(uint64_t slots) noexcept {
  uint64_t sum = kChildren;  // the root has its own cache line
  for (uint64_t nodes = slots; nodes > 1; nodes = parents_of(nodes)) sum += kChildren * parents_of(nodes);
  return sum;
}

SumTree::SumTree(std::atomic<uint64_t>* memory, uint64_t slots) noexcept : memory_(memory), slots_(slots) {
  assert(slots >= 1 && reinterpret_cast<uintptr_t>(memory) % kCacheLine == 0);
  nodes_[0] = slots;
  for (; nodes_[top_] > 1; ++top_) {
    nodes_[top_ + 1] = parents_of(nodes_[top_]);
    start_[top_ + 1] = start_[top_] + kChildren * nodes_[top_ + 1];  // levels end with a full cache line
  }
}

void SumTree::set(uint64_t slot, uint64_t weight) noexcept {
  assert(slot < slots_);
  node(0, slot).store(weight, kOrder);
  update_path(1, slot / kChildren);
}

uint64_t SumTree::get(uint64_t slot) const noexcept {
  assert(slot < slots_);
  return node(0, slot).load(kOrder);
}

uint64_t SumTree::total() const noexcept { return node(top_, 0).load(kOrder); }

SumTree::Found SumTree::find(uint64_t point) noexcept {
  uint64_t index = 0;
  uint64_t weight = total();
  for (size_t level = top_; level > 0; --level) {
    const Family family = children_of(level, index);
    // The node itself, not `weight`: that was read before the children, which may legitimately have changed since.
    if (family.sum != node(level, index).load(kOrder)) update_path(level, index);
    if (point >= family.sum) return {};
    // Ends at a child whose weight is not 0, and which therefore exists: the sum of the weights is above `point`, or
    // overflows 64 bits and is then above it too.
    size_t child = 0;
    for (; point >= family.weights[child]; ++child) point -= family.weights[child];
    index = kChildren * index + child;
    weight = family.weights[child];
  }
  if (point >= weight) return {};
  return {.slot = index, .weight = weight};
}

// Children of an inner node, each read once; 0 for those beyond the last node of their level.
SumTree::Family SumTree::children_of(size_t level, uint64_t index) const noexcept {
  Family family{};
  assert(index < nodes_[level]);
  const uint64_t existing = nodes_[level - 1] - kChildren * index;
  const std::atomic<uint64_t>* first = &node(level - 1, kChildren * index);
  for (size_t c = 0; c < kChildren; ++c) {
    family.weights[c] = c < existing ? first[c].load(kOrder) : 0;
    family.sum += family.weights[c];
  }
  return family;
}

// Steps 1 to 3 in the header, for one node.
void SumTree::update_node(size_t level, uint64_t index) noexcept {
  uint64_t sum = children_of(level, index).sum;
  for (;;) {
    node(level, index).store(sum, kOrder);
    const uint64_t again = children_of(level, index).sum;
    if (again == sum) return;
    sum = again;
  }
}

void SumTree::update_path(size_t level, uint64_t index) noexcept {
  for (; level <= top_; ++level, index /= kChildren) update_node(level, index);
}

uint64_t weight_of(double priority, double alpha, uint64_t slots) {
  assert(alpha >= 0 && std::isfinite(alpha) && slots >= 1);
  if (!std::isfinite(priority) || priority < 0) {
    throw Error("[replay] priority: expected a finite number, 0 or more, found {}", priority);
  }
  if (priority == 0) return 0;
  // Below the limit as a double implies at most the limit as an integer, whichever way the conversion rounds: there is
  // no double between the two.
  const auto limit = static_cast<double>(largest_weight(slots));
  const double units = std::nearbyint(std::pow(priority, alpha) * kUnitsPerOne);
  if (!(units < limit)) {
    throw Error("[replay] priority: expected at most {:.6g} in a buffer of {} rows with alpha {}, found {}",
                std::pow(limit / kUnitsPerOne, 1 / alpha), slots, alpha, priority);
  }
  return std::max<uint64_t>(1, static_cast<uint64_t>(units));
}

}  // namespace quern::replay
