// The sum tree: finds what a list of weights finds, and every node is the sum of its children when all are done.
#include "replay/sum_tree.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/cache_line.h"
#include "support/child_process.h"
#include "support/message.h"

namespace quern::replay {
namespace {

// Memory that a forked process shares, zero at first.
class SharedWords {
 public:
  explicit SharedWords(uint64_t words) : bytes_(words * sizeof(uint64_t)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;
  ~SharedWords() { munmap(memory_, bytes_); }
  std::atomic<uint64_t>* get() { return static_cast<std::atomic<uint64_t>*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

struct Tree {
  explicit Tree(uint64_t count) : slots(count), memory(SumTree::words(count)), tree(memory.get(), count) {}

  // Where each level starts in the memory, worked out independently: levels one after another, each padded to eights.
  // Returns how many nodes are not the sum of their children.
  uint64_t wrong_nodes() {
    uint64_t wrong = 0, begin = 0;
    for (uint64_t nodes = slots; nodes > 1;) {
      const uint64_t above = begin + (nodes + 7) / 8 * 8;
      for (uint64_t i = 0; i < (nodes + 7) / 8; ++i) {
        uint64_t sum = 0;
        for (uint64_t c = 8 * i; c < 8 * i + 8; ++c) sum += memory.get()[begin + c];
        if (memory.get()[above + i] != sum) ++wrong;
      }
      begin = above;
      nodes = (nodes + 7) / 8;
    }
    return wrong;
  }

  uint64_t slots;
  SharedWords memory;
  SumTree tree;
};

TEST(SumTree, FindMatchesALinearSearch) {
  for (const uint64_t slots : {1, 2, 7, 8, 9, 15, 63, 64, 65, 511, 512, 513, 4097}) {
    SCOPED_TRACE(slots);
    Tree all(slots);
    std::mt19937 random(static_cast<unsigned>(slots));
    std::vector<uint64_t> weights(slots);
    for (uint64_t round = 0; round < 2; ++round) {  // the second changes what the first has set
      for (uint64_t s = 0; s < slots; ++s) {
        weights[s] = random() % 4 == 0 ? 0 : random() % 20;
        all.tree.set(s, weights[s]);
      }
      uint64_t point = 0;
      for (uint64_t s = 0; s < slots; ++s) {
        ASSERT_EQ(all.tree.get(s), weights[s]);
        for (uint64_t i = 0; i < weights[s]; ++i, ++point) {
          const SumTree::Found found = all.tree.find(point);
          ASSERT_EQ(found.slot, s) << "point " << point;
          ASSERT_EQ(found.weight, weights[s]);
        }
      }
      EXPECT_EQ(all.tree.total(), point);
      EXPECT_EQ(all.tree.find(point).weight, 0u) << "beyond the last";
      EXPECT_EQ(all.wrong_nodes(), 0u);
    }
  }
}

TEST(SumTree, SumsNearly64Bits) {
  constexpr uint64_t kSlots = 65, kMax = std::numeric_limits<uint64_t>::max() / kSlots;
  Tree all(kSlots);
  for (uint64_t s = 0; s < kSlots; ++s) all.tree.set(s, kMax);
  EXPECT_EQ(all.tree.total(), kSlots * kMax);
  for (uint64_t s = 0; s < kSlots; ++s) {
    EXPECT_EQ(all.tree.find(s * kMax).slot, s);
    EXPECT_EQ(all.tree.find((s + 1) * kMax - 1).slot, s);
  }
}

// Two threads that take turns on one core never meet. Where it is not allowed the test is weaker.
void stay_on_core(uint64_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// Two changes at the same moment, and then a look: later changes would mend a sum that was left wrong.
TEST(SumTree, ConcurrentUpdatesLeaveEverySumRight) {
  constexpr uint64_t kRounds = 30000;
  Tree all(65);
  std::atomic<uint64_t> arrived{0};
  const auto meet = [&](uint64_t all_arrived) {  // not std::barrier: who sleeps there wakes when the other is long done
    ++arrived;
    for (int i = 0; arrived.load() < all_arrived; ++i) i < 1000 ? spin_pause() : std::this_thread::yield();
  };
  uint64_t wrong = 0;
  const auto change = [&](uint64_t slot) {
    stay_on_core(slot);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      meet(4 * round - 2);
      all.tree.set(slot, round);
      meet(4 * round);
      if (slot == 0) wrong += all.wrong_nodes();
    }
  };
  std::jthread one(change, 0), other(change, 1);
  one.join();
  other.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(all.tree.total(), 2u * kRounds);
}

TEST(SumTree, WritersAndAFinderLeaveEverySumRight) {
  constexpr uint64_t kSlots = 600;
  constexpr int kWriters = 4, kSets = 20000;
  Tree all(kSlots);
  all.tree.set(0, 1);
  std::atomic<int> writing{kWriters};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      // Half of the changes go to nine neighbours, so that writers meet in the same nodes.
      for (int i = 0; i < kSets; ++i) all.tree.set(i % 2 == 0 ? random() % 9 : random() % kSlots, 1 + random() % 1000);
      --writing;
    });
  }
  for (std::mt19937_64 random(9); writing.load() > 0;) {
    const SumTree::Found found = all.tree.find(random() % all.tree.total());
    ASSERT_LT(found.slot, kSlots);
    ASSERT_LE(found.weight, 1000u);
  }
  threads.clear();
  EXPECT_EQ(all.wrong_nodes(), 0u);
}

TEST(SumTree, FindRepairsADamagedNode) {
  constexpr uint64_t kSlots = 4097;
  Tree all(kSlots);
  for (uint64_t s = 0; s < kSlots; ++s) all.tree.set(s, 3);
  const uint64_t leaf_words = (kSlots + 7) / 8 * 8;
  all.memory.get()[leaf_words + 10] += 5;  // the sum of the slots 80 to 87
  EXPECT_EQ(all.wrong_nodes(), 2u);        // it and its parent
  EXPECT_EQ(all.tree.find(0).slot, 0u);    // another path
  EXPECT_EQ(all.wrong_nodes(), 2u);
  EXPECT_EQ(all.tree.find(3 * 85).slot, 85u);
  EXPECT_EQ(all.wrong_nodes(), 0u);
  EXPECT_EQ(all.tree.total(), 3 * kSlots);
}

// Shared memory may hold anything, also behind the last node of a level. One such word once led find() to a slot that
// does not exist, and from there outside of the memory.
TEST(SumTree, AnyContentsLeadToAnExistingSlot) {
  std::mt19937_64 random(9);
  for (const uint64_t slots : {2u, 9u, 65u, 600u, 4097u, 100'000u, 300'000u}) {
    const uint64_t words = SumTree::words(slots);
    constexpr uint64_t kMargin = 4096;  // words that are not the tree's
    SharedWords memory(words + 2 * kMargin);
    std::atomic<uint64_t>* const first = memory.get() + kMargin;
    for (int round = 0; round < 40; ++round) {
      const bool all = round % 4 == 0;
      for (uint64_t i = 0; i < words; ++i) first[i].store(all ? random() : 3, std::memory_order_relaxed);
      for (int i = 0; i < 20; ++i) first[random() % words] = random() >> random() % 64;
      SumTree tree(first, slots);
      for (int draw = 0; draw < 200; ++draw) {
        const uint64_t total = tree.total();
        ASSERT_LT(tree.find(random() % std::max<uint64_t>(total, 1)).slot, slots);
        if (draw % 10 == 0) tree.set(random() % slots, random());
      }
    }
    for (uint64_t i = 0; i < kMargin; ++i) {
      ASSERT_EQ(memory.get()[i], 0u);
      ASSERT_EQ(first[words + i], 0u);
    }
  }
}

TEST(SumTree, PaddingNodesAreIgnored) {
  Tree all(4097);
  for (uint64_t s = 0; s < 4097; ++s) all.tree.set(s, 3);
  const uint64_t levels[] = {4097, 513, 65, 9, 2};
  uint64_t begin = 0;
  for (const uint64_t nodes : levels) {
    for (uint64_t i = nodes; i % 8 != 0; ++i) all.memory.get()[begin + i] = 1000;
    begin += (nodes + 7) / 8 * 8;
  }
  std::mt19937_64 random(2);
  for (int draw = 0; draw < 20'000; ++draw) {
    const SumTree::Found found = all.tree.find(random() % all.tree.total());
    ASSERT_LT(found.slot, 4097u);
    ASSERT_EQ(found.weight, 3u);
  }
  EXPECT_EQ(all.tree.total(), 3u * 4097);
}

TEST(SumTree, PathLeftByAKilledProcessIsRepaired) {
  constexpr uint64_t kSlots = 4097;
  Tree all(kSlots);
  for (uint64_t s = 0; s < kSlots; ++s) all.tree.set(s, 100);
  int left_stale = 0;
  for (unsigned round = 0; round < 40; ++round) {
    const pid_t child = test::start_child([&] {
      std::mt19937 random(round);
      for (;;) all.tree.set(random() % kSlots, 1 + random() % 1000);
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + 137 * round));
    kill(child, SIGKILL);
    EXPECT_EQ(test::wait_for(child), 128 + SIGKILL);
    left_stale += all.wrong_nodes() > 0 ? 1 : 0;
    uint64_t finds = 0;
    for (uint64_t point = 0; point < all.tree.total() && finds < 2 * kSlots; ++finds) {  // one find a slot
      point += std::max<uint64_t>(1, all.tree.find(point).weight);
    }
    EXPECT_LE(finds, kSlots + 8);
    ASSERT_EQ(all.wrong_nodes(), 0u) << "round " << round;
  }
  EXPECT_GT(left_stale, 0) << "none of them was killed on its way up: the test shows nothing";
}

TEST(WeightOf, IsThePowerInFixedPoint) {
  EXPECT_EQ(weight_of(0, 0.6, 10), 0u);
  EXPECT_EQ(weight_of(1, 0.6, 10), 1u << 24);
  EXPECT_EQ(weight_of(4, 0.5, 10), 2u << 24);
  EXPECT_EQ(weight_of(3, 1, 10), 3u << 24);
  EXPECT_EQ(weight_of(123, 0, 10), 1u << 24);
  EXPECT_EQ(weight_of(0, 0, 10), 0u);
  EXPECT_EQ(weight_of(1e-30, 1, 10), 1u);  // never lost entirely
  EXPECT_EQ(weight_of(std::numeric_limits<double>::denorm_min(), 1, 10), 1u);
}

TEST(WeightOf, RejectsInvalidPriorities) {
  EXPECT_EQ(test::message_of([] { weight_of(-1, 0.6, 10); }),
            "[replay] priority: expected a finite number, 0 or more, found -1");
  EXPECT_EQ(test::message_of([] { weight_of(std::numeric_limits<double>::quiet_NaN(), 0.6, 10); }),
            "[replay] priority: expected a finite number, 0 or more, found nan");
  EXPECT_EQ(test::message_of([] { weight_of(std::numeric_limits<double>::infinity(), 0.6, 10); }),
            "[replay] priority: expected a finite number, 0 or more, found inf");
}

TEST(WeightOf, RejectsOverflowAndNamesTheMaximum) {
  constexpr uint64_t kSlots = 100000;
  EXPECT_EQ(
      test::message_of([] { weight_of(1e9, 1, kSlots); }),
      "[replay] priority: expected at most 1.09951e+07 in a buffer of 100000 rows with alpha 1, found 1000000000");
  for (const double alpha : {0.3, 0.6, 1.0, 2.0}) {
    for (const uint64_t slots : {uint64_t{1}, uint64_t{3}, uint64_t{7}, kSlots, uint64_t{1} << 30}) {
      const double largest = std::pow(std::pow(2.0, 40) / static_cast<double>(slots), 1 / alpha);
      const uint64_t weight = weight_of(largest * 0.999, alpha, slots);
      EXPECT_LE(weight, std::numeric_limits<uint64_t>::max() / slots) << slots;
      EXPECT_GT(weight, std::numeric_limits<uint64_t>::max() / slots / 2) << slots;
      EXPECT_NE(test::message_of([&] { weight_of(largest * 1.001, alpha, slots); }), "no error") << slots;
    }
  }
}

}  // namespace
}  // namespace quern::replay
