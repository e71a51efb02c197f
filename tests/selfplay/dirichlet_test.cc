// The random numbers of self-play, against what is known of their distributions.
#include "selfplay/dirichlet.h"

#include <cmath>
#include <set>
#include <vector>

#include "core/error.h"
#include "selfplay/move_choice.h"
#include "support/support.h"

namespace quern::selfplay::test {
namespace {

RandomWords words(uint64_t game) { return RandomWords(move_stream(Purpose::kSelfPlay, 7, game, 0)); }

TEST(RandomWords, DifferForEverySeedGameAndMove) {
  std::set<uint32_t> found;
  for (const uint64_t seed : {1, 2}) {
    for (const uint64_t game : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, kMaxGames - 1}) {
      for (const uint32_t move : {0u, 1u, 500u}) {
        found.insert(RandomWords(move_stream(Purpose::kSelfPlay, seed, game, move)).word());
        found.insert(RandomWords(move_stream(Purpose::kMatch, seed, game, move)).word());
      }
    }
  }
  EXPECT_EQ(found.size(), 2u * 4 * 3 * 2);
}

// The mean and the variance of a gamma distribution are both its shape.
TEST(Gamma, HasTheMeanAndVarianceOfItsShape) {
  constexpr size_t kDraws = 100000;
  for (const double shape : {0.1, 0.3, 1.0, 1.4, 10.0}) {
    RandomWords source = words(static_cast<uint64_t>(shape * 100));
    double sum = 0, square = 0;
    for (size_t i = 0; i < kDraws; ++i) {
      const double x = draw_gamma(shape, source);
      ASSERT_GT(x, 0);
      sum += x, square += x * x;
    }
    const double mean = sum / kDraws, variance = square / kDraws - mean * mean;
    const double error = std::sqrt(shape / kDraws);  // of the mean
    EXPECT_NEAR(mean, shape, 5 * error) << shape;
    // The variance of the squared deviation is 2 shape^2 + 6 shape.
    EXPECT_NEAR(variance, shape, 5 * std::sqrt((2 * shape * shape + 6 * shape) / kDraws)) << shape;
  }
}

// A share has mean 1 / n and variance (n - 1) / (n^2 (n alpha + 1)).
TEST(Dirichlet, SharesHaveTheirMeanAndVariance) {
  constexpr size_t kDraws = 20000, kN = 7;
  for (const double alpha : {0.03, 0.3, 1.4}) {
    std::vector<double> sum(kN), square(kN), shares(kN);
    for (size_t i = 0; i < kDraws; ++i) {
      RandomWords source = words(i);
      draw_dirichlet(alpha, shares, source);
      double all = 0;
      for (size_t k = 0; k < kN; ++k) {
        all += shares[k], sum[k] += shares[k], square[k] += shares[k] * shares[k];
      }
      ASSERT_NEAR(all, 1, 1e-9);
    }
    const double expected = 6.0 / (49 * (7 * alpha + 1));
    for (size_t k = 0; k < kN; ++k) {
      const double mean = sum[k] / kDraws;
      EXPECT_NEAR(mean, 1.0 / kN, 5 * std::sqrt(expected / kDraws)) << alpha;
      EXPECT_NEAR(square[k] / kDraws - mean * mean, expected, 0.06 * expected) << alpha;
    }
  }
}

std::vector<Edge> edges_with(const std::vector<uint32_t>& visits) {
  std::vector<Edge> edges;
  for (const uint32_t n : visits) edges.push_back({.prior = 0.1f, .visits = n});
  return edges;
}

TEST(MoveChoice, TheMostVisitedThenTheHighestPriorThenTheFirst) {
  std::vector<Edge> edges = edges_with({3, 7, 7, 0});
  EXPECT_EQ(most_visited(edges), 1u);
  edges[2].prior = 0.2f;
  EXPECT_EQ(most_visited(edges), 2u);
  edges = edges_with({0, 0, 0});
  EXPECT_EQ(most_visited(edges), 0u);
  edges[2].prior = 0.5f;
  EXPECT_EQ(most_visited(edges), 2u);
  RandomWords source = words(0);
  EXPECT_EQ(draw_by_visits(edges, 1, source), 2u);
}

TEST(MoveChoice, TemperatureIsAPowerOfTheVisits) {
  constexpr size_t kDraws = 40000;
  const std::vector<Edge> edges = edges_with({10, 0, 30, 60});
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    std::vector<double> expected, counts(4);
    double sum = 0;
    for (const Edge& edge : edges) {
      expected.push_back(edge.visits == 0 ? 0 : std::pow(edge.visits, 1 / static_cast<double>(temperature)));
      sum += expected.back();
    }
    for (size_t i = 0; i < kDraws; ++i) {
      RandomWords source = words(i);
      ++counts[draw_by_visits(edges, temperature, source)];
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i] / kDraws, expected[i] / sum, 0.012) << temperature;
    EXPECT_EQ(counts[1], 0);
  }
  RandomWords source = words(1);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(draw_by_visits(edges, 0.01f, source), 3u);
}

}  // namespace
}  // namespace quern::selfplay::test
