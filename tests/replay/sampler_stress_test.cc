// Sampling while others wrap the ring: no row is torn, and every id was in the window when it was drawn.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/clock.h"
#include "replay/sampler.h"
#include "support/watchdog.h"

namespace quern::replay {
namespace {

constexpr uint64_t kCapacity = 64;
constexpr size_t kWords = 512;
constexpr size_t kRows = 48;

// A row whose words all follow from the first one.
void fill(std::vector<uint64_t>& row, uint64_t number) {
  for (size_t i = 0; i < kWords; ++i) row[i] = number + i * 0x9E3779B97F4A7C15u;
}

bool is_intact(const uint64_t* row) {
  for (size_t i = 1; i < kWords; ++i) {
    if (row[i] != row[0] + i * 0x9E3779B97F4A7C15u) return false;
  }
  return true;
}

class SamplerStress : public ::testing::TestWithParam<Rule> {};

TEST_P(SamplerStress, TwoWritersWrapTheRing) {
  const quern::test::Watchdog watchdog("sampling from a ring that is wrapped");
  ReplayBuffer buffer = ReplayBuffer::create(Schema({{.name = "words", .dtype = DType::kU64, .shape = {kWords}}}),
                                             {.capacity = kCapacity, .prioritised = true, .prefault = false});
  const auto add = [&](uint64_t number) {
    std::vector<uint64_t> row(kWords);
    fill(row, number);
    const std::byte* const column = reinterpret_cast<const std::byte*>(row.data());
    buffer.add({&column, 1}, 1);
  };
  for (uint64_t i = 0; i < kCapacity; ++i) add(i);
  std::vector<std::jthread> threads;
  for (uint64_t t = 1; t <= 2; ++t) {
    threads.emplace_back([&, t](const std::stop_token& stop) {
      for (uint64_t i = 0; !stop.stop_requested(); ++i) add(t << 40 | i);
    });
  }
  Sampler sampler(buffer, 1);
  std::vector<uint64_t> words(kRows * kWords), ids(kRows), ages(kRows);
  std::vector<float> weights(kRows);
  std::byte* const column = reinterpret_cast<std::byte*>(words.data());
  uint64_t torn = 0, outside = 0, old = 0, repeated = 0, calls = 0;
  const double end = seconds_now() + 0.3;
  while (seconds_now() < end) {
    const uint64_t before = buffer.ring().window().begin;
    ASSERT_NO_THROW(sampler.sample({.rows = kRows, .rule = GetParam(), .half_life = 20},
                                   {{&column, 1}, ids.data(), ages.data(), weights.data()}));
    const uint64_t after = buffer.ring().window().end;
    ++calls;
    for (size_t r = 0; r < kRows; ++r) {
      torn += is_intact(&words[r * kWords]) ? 0 : 1;
      outside += ids[r] >= before && ids[r] < after ? 0 : 1;
      old += ages[r] < kCapacity ? 0 : 1;
    }
    repeated += kRows - std::set(ids.begin(), ids.end()).size();
  }
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(outside, 0u);
  EXPECT_EQ(old, 0u);
  EXPECT_GT(calls, 3u);
  if (GetParam() == Rule::kWithoutReplacement) {
    EXPECT_EQ(repeated, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, SamplerStress,
                         ::testing::Values(Rule::kUniform, Rule::kWithoutReplacement, Rule::kPrioritised,
                                           Rule::kRecent));

}  // namespace
}  // namespace quern::replay
