// Weights of the slots of a buffer, and drawing a slot in proportion to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace quern::replay {

// A tree with eight children a node, so that the children of a node are one cache line; 64-bit integers, so that a sum
// does not depend on the order in which it was made, and never drifts. Every node is the sum of its children: whoever
// changes a child stores the new sum in its parent, reads the children again, and repeats if they changed meanwhile. So
// a stale store is always followed by another look of the one who made it, and when all are done every sum is right. A
// process killed in between leaves a sum that is off by one change; find() notices the difference on its way down and
// mends it. Any thread, any process; no lock, no allocation. O(log8 slots) each.
class SumTree {
 public:
  // Words that the memory must have, all zero at first; aligned to a cache line.
  static uint64_t words(uint64_t slots) noexcept;
  SumTree(std::atomic<uint64_t>* memory, uint64_t slots) noexcept;

  void set(uint64_t slot, uint64_t weight) noexcept;
  uint64_t get(uint64_t slot) const noexcept;
  uint64_t total() const noexcept;

  // The slot in which `point`, below total(), falls when the weights lie one after another; or, while others change
  // weights, some slot or `slots` (then draw again).
  uint64_t find(uint64_t point) noexcept;
};

// A priority as a weight: priority ^ alpha in units of 2^-24, at least one unit if the priority is above 0, 0 for 0.
// Error when it is negative, not finite, or so large that `slots` such weights would overflow the sum; the message says
// the largest that is possible.
uint64_t weight_of(double priority, double alpha, uint64_t slots);

}  // namespace quern::replay
