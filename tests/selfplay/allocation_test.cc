// Searching allocates nothing but positions.
#include "support/allocations.h"

#include "searching.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

TEST(SelfplayAllocation, SearchesReuseTheirMemory) {
  if (!quern::test::kCountsAllocations) GTEST_SKIP() << "cannot count allocations here";
  const Four game;
  Search search{SearchSettings{}};
  std::vector<float> priors(7, 1.0f / 7);
  const auto play_moves = [&] {
    uint32_t simulations = 0;
    search.reset(*game.start());
    for (int move = 0; move < 10; ++move) {
      search.begin(200, {.share = 0.25f, .alpha = 1, .stream = {.seed = 1}});
      while (search.next_leaf() != nullptr) {
        search.take({priors.data(), search.leaf_actions().size()}, {0.5f, 0, 0.5f});
      }
      simulations += 200;
      search.advance(static_cast<games::Action>(3 + move / 6));  // two columns: nobody wins
    }
    return simulations;
  };
  play_moves();
  const size_t before = quern::test::allocation_count;
  const uint32_t simulations = play_moves();
  // A clone for each leaf, and for the start: no simulation needs two.
  EXPECT_LE(quern::test::allocation_count - before, simulations + 3);
}

}  // namespace
}  // namespace quern::selfplay::test
