// Weights of the slots of a buffer, and sampling of slots in proportion to them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace quern::replay {

// A tree with eight children per node, so that the children of a node are one cache line; 64-bit integers, so that a
// sum does not depend on the order of additions and never drifts. Any thread, any process; no lock, no allocation.
// O(log8 slots) per operation: 6 levels of sums for 100,000 slots.
//
// Every node is the sum of its children when no update is in progress. A thread that changes a child does, for its
// parent P:
//
//   1. s = the sum of the children
//   2. P = s
//   3. r = the sum of the children; if r differs from s: s = r, go to 2
//
// and then the same for the parent of P, up to the root. All loads and stores are seq_cst, so they have a single total
// order. Let W be the last store into P, of the value s, by thread X. X read the children after W and found the sum s
// again, otherwise it would have stored again. Suppose that some child was changed after X last read it. The thread
// that changed it stored into P after that (step 2 happens at least once after every change of a child), which is after
// W: but W is the last. So no child changed after X read it, the values that X read are final, and P is their sum. The
// argument does not depend on how the children got their values, so it holds level by level, from the leaves up. It
// needs the order of W before the later read by the same thread, which release and acquire do not give: that is why
// everything is seq_cst (on x86 an xchg for a store, a plain mov for a load). It terminates: step 3 repeats only when a
// child changed, leaves change once per set(), and each level changes only as often as the level below causes it to.
//
// A process that is killed between updating a child and its parent leaves one path with a sum that is off by its last
// change. find() checks the sums on its way down, and repairs from the first node that is not the sum of its children
// to the root; set() of a slot repairs the path of that slot. (A stale sum of 0 hides the slots below it from find()
// until one of them is set again.)
//
// No sum overflows, not even one that mixes old and new children: every value of a node is a sum of at most
// 8^level weights, and weight_of() returns none larger than 2^64 / slots.
//
// The memory may be shared, so it may hold arbitrary values. A level ends with a full cache line, and the words after
// its last node are never read: each step of find() and each store goes to a node that exists, whatever the sums are.
class SumTree {
 public:
  static constexpr uint64_t kChildren = 8;

  struct Found {
    uint64_t slot = 0;
    uint64_t weight = 0;  // of the slot, when it was found; 0: no slot was found
  };

  // Required size of the memory in words. It must be zero at first and aligned to a cache line.
  static uint64_t words(uint64_t slots) noexcept;
  SumTree(std::atomic<uint64_t>* memory, uint64_t slots) noexcept;

  void set(uint64_t slot, uint64_t weight) noexcept;
  uint64_t get(uint64_t slot) const noexcept;
  uint64_t total() const noexcept;

  // The slot that contains `point`, below total(), when the weights are laid out end to end, and its weight. While
  // weights are changed concurrently, it is some slot whose weight was not 0, or none: then draw again.
  Found find(uint64_t point) noexcept;

 private:
  static constexpr size_t kMaxLevels = 23;  // 8^22 slots exceed 64 bits

  struct Family {
    std::array<uint64_t, kChildren> weights;
    uint64_t sum;
  };

  std::atomic<uint64_t>& node(size_t level, uint64_t index) const noexcept { return memory_[start_[level] + index]; }
  Family children_of(size_t level, uint64_t index) const noexcept;  // level >= 1, index < nodes_[level]
  void update_node(size_t level, uint64_t index) noexcept;
  void update_path(size_t level, uint64_t index) noexcept;

  std::atomic<uint64_t>* memory_;
  uint64_t slots_;
  std::array<uint64_t, kMaxLevels> start_{};  // of each level in the memory, in words; level 0 is the leaves
  std::array<uint64_t, kMaxLevels> nodes_{};  // of each level
  size_t top_ = 0;                            // the level of the root
};

// The weight of a priority: priority ^ alpha in units of 2^-24, at least one unit if the priority is above 0, 0 for 0.
// Error when it is negative, not finite, or so large that `slots` such weights would overflow the sum; the message
// contains the largest valid priority. alpha must be finite and not negative.
uint64_t weight_of(double priority, double alpha, uint64_t slots);

// The sum of `slots` such weights fits in 64 bits.
constexpr uint64_t largest_weight(uint64_t slots) noexcept { return ~uint64_t{0} / slots; }

}  // namespace quern::replay
