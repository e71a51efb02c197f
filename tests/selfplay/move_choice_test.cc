// Which move follows from the visits and proofs of a search.
#include "selfplay/move_choice.h"

#include <array>
#include <vector>

#include "support/support.h"

namespace quern::selfplay::test {
namespace {

Edge edge(uint32_t visits, float prior, Proof proof = Proof::kNone) {
  return {.prior = prior, .visits = visits, .proof = proof};
}

std::vector<float> shares(std::span<const Edge> edges) {
  std::vector<float> result(edges.size());
  write_shares(edges, result);
  return result;
}

TEST(MoveChoice, TheMostVisitedThenTheMostProbableThenTheFirst) {
  EXPECT_EQ(most_visited(std::array{edge(1, 0.5f), edge(3, 0.1f), edge(2, 0.4f)}), 1u);
  EXPECT_EQ(most_visited(std::array{edge(2, 0.1f), edge(2, 0.4f), edge(2, 0.4f)}), 1u);
  EXPECT_EQ(most_probable(std::array{edge(9, 0.1f), edge(0, 0.4f), edge(2, 0.4f)}), 1u);
}

TEST(MoveChoice, ProofsComeBeforeVisits) {
  const std::array won = {edge(90, 0.9f), edge(0, 0.1f, Proof::kWin), edge(5, 0.1f, Proof::kDraw)};
  EXPECT_EQ(most_visited(won), 1u);
  const std::array lost = {edge(90, 0.9f, Proof::kLoss), edge(1, 0.1f), edge(0, 0.2f)};
  EXPECT_EQ(most_visited(lost), 1u);
  const std::array all_lost = {edge(9, 0.1f, Proof::kLoss), edge(12, 0.1f, Proof::kLoss)};
  EXPECT_EQ(most_visited(all_lost), 1u);
  const std::array drawn = {edge(9, 0.1f, Proof::kDraw), edge(12, 0.1f)};
  EXPECT_EQ(most_visited(drawn), 1u);
}

TEST(MoveChoice, DrawnMovesAreNeverThoseThatLose) {
  const std::array edges = {edge(90, 0.9f, Proof::kLoss), edge(10, 0.1f), edge(30, 0.2f), edge(0, 0.1f)};
  std::array<int, 4> count{};
  for (uint32_t game = 0; game < 4000; ++game) {
    RandomWords words(move_stream(Purpose::kSelfPlay, 1, game, 0));
    ++count[draw_by_visits(edges, 1.0f, words)];
  }
  EXPECT_EQ(count[0], 0);
  EXPECT_EQ(count[3], 0);
  EXPECT_NEAR(count[1], 1000, 120);
}

TEST(MoveChoice, SharesSumToOneOverTheMovesThatComeIntoQuestion) {
  EXPECT_EQ(shares(std::array{edge(1, 0), edge(3, 0)}), (std::vector{0.25f, 0.75f}));
  EXPECT_EQ(shares(std::array{edge(5, 0, Proof::kLoss), edge(3, 0), edge(1, 0, Proof::kDraw)}),
            (std::vector{0.0f, 0.75f, 0.25f}));
  EXPECT_EQ(shares(std::array{edge(5, 0, Proof::kWin), edge(3, 0), edge(0, 0, Proof::kWin)}),
            (std::vector{0.5f, 0.0f, 0.5f}));
  EXPECT_EQ(shares(std::array{edge(1, 0, Proof::kLoss), edge(3, 0, Proof::kLoss)}), (std::vector{0.25f, 0.75f}));
  EXPECT_EQ(shares(std::array{edge(0, 0.3f, Proof::kLoss), edge(0, 0.7f)}), (std::vector{0.0f, 1.0f}));
}

}  // namespace
}  // namespace quern::selfplay::test
