#include "generate/sampler.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "core/error.h"
#include "support/support.h"

namespace quern {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<size_t> counts(const Sampling& sampling, const std::vector<float>& logits, uint32_t draws) {
  Sampler sampler(sampling, logits.size());
  std::vector<size_t> found(logits.size());
  for (uint32_t i = 0; i < draws; ++i) ++found[static_cast<size_t>(sampler.pick(logits, i))];
  return found;
}

std::set<size_t> taken(const Sampling& sampling, const std::vector<float>& logits, uint32_t draws = 5000) {
  const std::vector<size_t> found = counts(sampling, logits, draws);
  std::set<size_t> tokens;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] > 0) tokens.insert(i);
  }
  return tokens;
}

// Pearson's statistic of the counts against softmax(logits / temperature) over `kept`.
double chi_square(const std::vector<size_t>& found, const std::vector<float>& logits, double temperature,
                  const std::set<size_t>& kept) {
  const double draws = static_cast<double>(std::accumulate(found.begin(), found.end(), size_t{0}));
  double total = 0, statistic = 0;
  for (const size_t i : kept) total += std::exp(static_cast<double>(logits[i]) / temperature);
  for (const size_t i : kept) {
    const double expected = draws * std::exp(static_cast<double>(logits[i]) / temperature) / total;
    const double difference = static_cast<double>(found[i]) - expected;
    statistic += difference * difference / expected;
  }
  return statistic;
}

// 99.9 % of such statistics with 5 degrees of freedom are below 20.5; a temperature off by a tenth gives far more.
TEST(Sampler, DrawsFromTheSoftmaxAtTheTemperature) {
  const std::vector<float> logits = {1.0f, -0.5f, 0.3f, 2.0f, 1.0f, -2.0f};
  for (const float temperature : {0.7f, 1.0f, 2.5f}) {
    const std::vector<size_t> found = counts({.temperature = temperature, .seed = 5}, logits, 60000);
    EXPECT_LT(chi_square(found, logits, temperature, {0, 1, 2, 3, 4, 5}), 20.5) << temperature;
    EXPECT_GT(chi_square(found, logits, 1.1 * temperature, {0, 1, 2, 3, 4, 5}), 20.5) << temperature;
  }
}

// 2 and 3 degrees of freedom: 13.8 and 16.3.
TEST(Sampler, WhatIsKeptKeepsItsProportions) {
  const std::vector<float> logits = {1.0f, -0.5f, 0.3f, 2.0f, 1.5f, -2.0f};
  EXPECT_LT(chi_square(counts({.top_k = 3, .seed = 1}, logits, 60000), logits, 1.0, {0, 3, 4}), 13.8);
  EXPECT_LT(chi_square(counts({.top_p = 0.95f, .seed = 1}, logits, 60000), logits, 1.0, {0, 2, 3, 4}), 16.3);
}

TEST(Sampler, TemperatureZeroTakesTheLikeliestAndOfEqualsTheFirst) {
  Sampler sampler({.temperature = 0.0f}, 5);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(sampler.pick(std::vector<float>{0.0f, 3.0f, -1.0f, 3.0f, 2.0f}, i), 1);
    EXPECT_EQ(sampler.pick(std::vector<float>{-kInfinity, -3.0f, -1.0f, -3.0f, -2.0f}, i), 2);
  }
}

TEST(Sampler, NearZeroAndHugeTemperaturesAreNoSpecialCase) {
  const std::vector<float> logits = {0.0f, 3.0f, -1e30f, 2.999f};
  EXPECT_EQ(taken({.temperature = 1e-38f}, logits), (std::set<size_t>{1}));
  EXPECT_EQ(taken({.temperature = 3e38f}, logits), (std::set<size_t>{0, 1, 2, 3}));
}

TEST(Sampler, TopKCutsTiesByTheLowerId) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.0f, 3.0f, 1.0f, 0.0f};
  EXPECT_EQ(taken({.top_k = 1}, logits), (std::set<size_t>{3}));
  EXPECT_EQ(taken({.top_k = 2}, logits), (std::set<size_t>{1, 3}));
  EXPECT_EQ(taken({.top_k = 3}, logits), (std::set<size_t>{0, 1, 3}));
  EXPECT_EQ(taken({.top_k = 4}, logits), (std::set<size_t>{0, 1, 2, 3}));
  for (const int64_t all : {int64_t{0}, int64_t{6}, int64_t{7}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(taken({.top_k = all}, logits).size(), 6u) << all;
  }
}

// Over the number of tokens from which they are found in another way, with many ties.
TEST(Sampler, TopKOverAManyTokenVocabularyIsThatOfAFullSort) {
  std::vector<float> logits = test::normal(1000, 6);
  for (float& logit : logits) logit = std::round(4 * logit) / 4;
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  for (const size_t k : {1u, 2u, 14u, 15u, 16u, 17u, 100u}) {
    const std::set<size_t> expected(order.begin(), order.begin() + static_cast<ptrdiff_t>(k));
    EXPECT_EQ(taken({.temperature = 3.0f, .top_k = static_cast<int64_t>(k)}, logits), expected) << k;
  }
}

// Probabilities 1/2, 1/4, 1/8, 1/8: the fewest that reach p, never none.
TEST(Sampler, TopPKeepsTheFewestThatReachItAndCutsTiesByTheLowerId) {
  const std::vector<float> logits = {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)};
  EXPECT_EQ(taken({.top_p = 1e-6f}, logits), (std::set<size_t>{1}));
  EXPECT_EQ(taken({.top_p = 0.49f}, logits), (std::set<size_t>{1}));
  EXPECT_EQ(taken({.top_p = 0.51f}, logits), (std::set<size_t>{1, 3}));
  EXPECT_EQ(taken({.top_p = 0.76f}, logits), (std::set<size_t>{0, 1, 3}));
  EXPECT_EQ(taken({.top_p = 0.9f}, logits), (std::set<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(taken({.top_p = 1.0f}, logits), (std::set<size_t>{0, 1, 2, 3}));
}

// top_p is of what top_k leaves: 2/3 and 1/3.
TEST(Sampler, TopPComesAfterTopKAndTemperature) {
  const std::vector<float> logits = {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)};
  EXPECT_EQ(taken({.top_k = 2, .top_p = 0.6f}, logits), (std::set<size_t>{1}));
  EXPECT_EQ(taken({.top_k = 2, .top_p = 0.7f}, logits), (std::set<size_t>{1, 3}));
  EXPECT_EQ(taken({.temperature = 0.5f, .top_p = 0.7f}, logits), (std::set<size_t>{1}));  // 16 : 4 : 1 : 1
}

// Probabilities 1/2, 1/4, 1/8, 1/8, each at least min_p times 1/2; exactly as likely counts.
TEST(Sampler, MinPKeepsWhatIsLikelyNextToTheLikeliest) {
  const std::vector<float> logits = {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)};
  EXPECT_EQ(taken({.min_p = 0.0f}, logits), (std::set<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(taken({.min_p = 0.24f}, logits), (std::set<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(taken({.min_p = 0.26f}, logits), (std::set<size_t>{1, 3}));
  EXPECT_EQ(taken({.min_p = 0.51f}, logits), (std::set<size_t>{1}));
  EXPECT_EQ(taken({.min_p = 1.0f}, logits), (std::set<size_t>{1}));
  EXPECT_EQ(taken({.min_p = 1.0f}, {2.0f, 1.0f, 2.0f}), (std::set<size_t>{0, 2}));
  EXPECT_LT(chi_square(counts({.min_p = 0.2f, .seed = 1}, logits, 60000), logits, 1.0, {0, 1, 2, 3}), 16.3);
}

// Of 0.4, 0.3, 0.2, 0.1: top_p = 0.5 leaves two. If min_p = 0.6 came first, 0.4 would be more than half of the rest.
TEST(Sampler, MinPComesAfterTemperatureTopKAndTopP) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  EXPECT_EQ(taken({.top_p = 0.5f, .min_p = 0.6f}, logits), (std::set<size_t>{0, 1}));
  EXPECT_EQ(taken({.top_p = 0.75f, .min_p = 0.6f}, logits), (std::set<size_t>{0, 1}));
  EXPECT_EQ(taken({.top_p = 0.75f, .min_p = 0.4f}, logits), (std::set<size_t>{0, 1, 2}));
  EXPECT_EQ(taken({.top_k = 2, .min_p = 0.4f}, logits), (std::set<size_t>{0, 1}));
  EXPECT_EQ(taken({.temperature = 0.5f, .min_p = 0.6f}, logits), (std::set<size_t>{0}));  // 16 : 9 : 4 : 1
}

// Pieces of the sort: what a full sort keeps, for cuts in the first piece, in a later one and near the end.
TEST(Sampler, TopPOverAManyTokenVocabularyIsThatOfAFullSort) {
  std::vector<float> logits = test::normal(1000, 6, 1.5f);
  for (size_t i = 0; i < logits.size(); i += 3) logits[i] = std::round(logits[i]);  // ties
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  double total = 0;
  for (const size_t i : order) total += std::exp(static_cast<double>(logits[i]));
  for (const float p : {0.01f, 0.2f, 0.5f, 0.9f, 0.999f}) {
    double sum = 0;
    std::set<size_t> kept;
    for (size_t i = 0; sum < static_cast<double>(p) * total; ++i) {
      sum += std::exp(static_cast<double>(logits[order[i]]));
      kept.insert(order[i]);
    }
    const std::set<size_t> found = taken({.top_p = p, .seed = 3}, logits, 1000);
    EXPECT_TRUE(std::includes(kept.begin(), kept.end(), found.begin(), found.end())) << p;
    EXPECT_GT(found.size(), kept.size() * 3 / 10) << p;
  }
}

TEST(Sampler, ATokenDependsOnSeedAndIndexAlone) {
  const std::vector<float> logits = test::normal(100, 2);
  const auto text = [&](uint64_t seed) {
    Sampler sampler({.seed = seed}, 100);
    std::vector<int32_t> tokens;
    for (uint32_t i = 0; i < 50; ++i) tokens.push_back(sampler.pick(logits, i));
    return tokens;
  };
  EXPECT_EQ(text(7), text(7));
  EXPECT_NE(text(7), text(8));
  EXPECT_NE(text(7), text(7 + (uint64_t{1} << 40)));  // all 64 bits of the seed count
  Sampler sampler({.seed = 7}, 100);
  EXPECT_EQ(sampler.pick(logits, 31), text(7)[31]);
}

std::string message(const Sampling& sampling) {
  try {
    Sampler(sampling, 10);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Sampler, BadOptionsAreErrorsThatNameThem) {
  EXPECT_EQ(message({.temperature = -0.5f}), "[generate] temperature: expected 0 or more, found -0.5");
  EXPECT_NE(message({.temperature = std::nanf("")}), "");
  EXPECT_NE(message({.temperature = kInfinity}), "");
  EXPECT_EQ(message({.top_k = -1}), "[generate] top_k: expected 0 (all) or more, found -1");
  EXPECT_EQ(message({.top_p = 0.0f}), "[generate] top_p: expected more than 0 and at most 1, found 0");
  EXPECT_NE(message({.top_p = 1.01f}), "");
  EXPECT_NE(message({.top_p = std::nanf("")}), "");
  EXPECT_EQ(message({.min_p = -0.1f}), "[generate] min_p: expected 0 to 1, found -0.1");
  EXPECT_NE(message({.min_p = 1.5f}), "");
  EXPECT_NE(message({.min_p = std::nanf("")}), "");
  EXPECT_EQ(message({.repeat_penalty = 0.0f}), "[generate] repeat_penalty: expected more than 0 (1 for none), found 0");
  EXPECT_NE(message({.repeat_penalty = -1.0f}), "");
  EXPECT_NE(message({.repeat_penalty = kInfinity}), "");
  EXPECT_NE(message({.repeat_penalty = std::nanf("")}), "");
  EXPECT_EQ(message({.repeat_penalty = 1.1f, .repeat_window = size_t{1} << 30}),
            "[generate] repeat_window: expected 0 (all tokens) to 1048576, found 1073741824");
  EXPECT_EQ(message({.repeat_window = 10}),
            "[generate] repeat_window: expected together with a repeat_penalty other than 1, found 10 without one");
  EXPECT_EQ(message({.repeat_penalty = 1.1f, .repeat_window = 0}), "");
  EXPECT_EQ(message({}), "");
}

TEST(Sampler, UselessLogitsAreErrors) {
  for (const float temperature : {0.0f, 1.0f}) {
    Sampler sampler({.temperature = temperature}, 3);
    EXPECT_THROW(sampler.pick(std::vector<float>{0.0f, std::nanf(""), 1.0f}, 0), Error);
    EXPECT_THROW(sampler.pick(std::vector<float>{0.0f, kInfinity, 1.0f}, 0), Error);
    EXPECT_THROW(sampler.pick(std::vector<float>(3, -kInfinity), 0), Error);
  }
  EXPECT_EQ(taken({}, {-kInfinity, 0.0f, -kInfinity, 0.5f, -kInfinity}), (std::set<size_t>{1, 3}));
}

}  // namespace
}  // namespace quern
