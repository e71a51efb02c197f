// The sampler: every rule draws what its formula says, repeatably, and never a row that is not there.
#include "replay/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "replay/numbered_rows.h"
#include "support/message.h"

namespace quern::replay {
namespace {

using quern::test::message_of;
using test::add_numbers;
using test::draw;
using test::misfit;
using test::numbered;
using test::Rows;

// How often each id from `first` on came, in `calls` calls.
std::vector<uint64_t> tally(const ReplayBuffer& buffer, const SampleRequest& request, int calls, uint64_t first,
                            uint64_t ids) {
  Sampler sampler(buffer, 17);
  std::vector<uint64_t> counts(ids);
  for (int call = 0; call < calls; ++call) {
    const Rows rows = draw(sampler, request);
    EXPECT_EQ(rows.numbers, rows.ids);
    for (size_t i = 0; i < request.rows; ++i) {
      EXPECT_EQ(rows.ages[i], buffer.ring().window().end - 1 - rows.ids[i]);
      ++counts.at(rows.ids[i] - first);
    }
  }
  return counts;
}

TEST(Sampler, UniformIsUniformOverTheWindow) {
  for (const uint64_t added : {1, 2, 37, 100, 101, 250}) {
    SCOPED_TRACE(added);
    const ReplayBuffer buffer = numbered(100, added);
    const uint64_t size = std::min<uint64_t>(added, 100);
    const auto counts = tally(buffer, {.rows = 1000}, 100, added - size, size);
    if (size == 1) continue;
    EXPECT_LT(misfit(counts, std::vector<double>(size, 1.0)), 6);
  }
}

TEST(Sampler, RecentHalvesWithEveryHalfLife) {
  const ReplayBuffer buffer = numbered(60, 143);
  for (const double half_life : {0.01, 0.7, 5.3, 40.0, 1000.0, 1e12, 1e300}) {
    SCOPED_TRACE(half_life);
    std::vector<double> chances(60);
    for (size_t i = 0; i < 60; ++i) chances[i] = std::exp2(-static_cast<double>(59 - i) / half_life);
    auto counts = tally(buffer, {.rows = 1000, .rule = Rule::kRecent, .half_life = half_life}, 200, 83, 60);
    // Rows that are hardly ever drawn count as one, since chi-square wants a few in each cell.
    size_t rare = 0;
    while (chances[rare] * 200000 < 20) ++rare;
    if (rare > 0) {
      counts[rare - 1] = std::accumulate(counts.begin(), counts.begin() + static_cast<long>(rare), uint64_t{0});
      chances[rare - 1] = std::accumulate(chances.begin(), chances.begin() + static_cast<long>(rare), 0.0);
      EXPECT_LT(static_cast<double>(counts[rare - 1]), 200000 * chances[rare - 1] + 300);
    }
    if (rare == 59) continue;
    EXPECT_LT(misfit(std::span(counts).subspan(rare), std::span(chances).subspan(rare)), 6);
  }
}

struct Prioritised {
  explicit Prioritised(uint64_t capacity, double alpha)
      : buffer(ReplayBuffer::create(test::number_schema(),
                                    {.capacity = capacity, .prioritised = true, .alpha = alpha, .prefault = false})) {}
  ReplayBuffer buffer;
};

TEST(Sampler, PrioritisedFollowsThePowerOfThePriorities) {
  Prioritised made(70, 0.7);
  std::mt19937 random(3);
  std::vector<float> priorities(100);
  for (float& priority : priorities) priority = random() % 5 == 0 ? 0.0f : static_cast<float>(random() % 1000) / 100;
  add_numbers(made.buffer, 100, priorities);
  std::vector<double> chances(70);
  for (int round = 0; round < 2; ++round) {  // as added, then as updated
    for (size_t i = 0; i < 70; ++i) chances[i] = priorities[30 + i] > 0 ? std::pow(priorities[30 + i], 0.7) : 0;
    const auto counts = tally(made.buffer, {.rows = 1000, .rule = Rule::kPrioritised}, 200, 30, 70);
    EXPECT_LT(misfit(counts, chances), 6);
    std::vector<uint64_t> ids(70);
    std::iota(ids.begin(), ids.end(), 30);
    std::shuffle(priorities.begin() + 30, priorities.end(), random);
    EXPECT_EQ(made.buffer.update_priorities(ids, std::span(priorities).subspan(30)), 70u);
  }
}

TEST(Sampler, ImportanceWeightsCorrectForTheProbabilities) {
  Prioritised made(50, 1.0);
  std::vector<float> priorities(50);
  for (size_t i = 0; i < 50; ++i) priorities[i] = 0.25f * static_cast<float>(i + 1);
  add_numbers(made.buffer, 50, priorities);
  const double sum = std::accumulate(priorities.begin(), priorities.end(), 0.0);
  for (const double beta : {0.0, 0.4, 1.0, 3.0}) {
    Sampler sampler(made.buffer, 5);
    const Rows rows = draw(sampler, {.rows = 200, .rule = Rule::kPrioritised, .beta = beta});
    std::vector<double> weights;
    for (const uint64_t id : rows.ids) weights.push_back(std::pow(50 * priorities[id] / sum, -beta));
    const double largest = *std::max_element(weights.begin(), weights.end());
    for (size_t i = 0; i < 200; ++i) EXPECT_NEAR(rows.weights[i], weights[i] / largest, 1e-5);
  }
}

TEST(Sampler, OtherRulesHaveWeightsOfOne) {
  Prioritised made(50, 1.0);
  add_numbers(made.buffer, 50);
  Sampler sampler(made.buffer, 5);
  for (const Rule rule : {Rule::kUniform, Rule::kWithoutReplacement, Rule::kRecent}) {
    const Rows rows = draw(sampler, {.rows = 20, .rule = rule, .half_life = 10});
    EXPECT_EQ(rows.weights, std::vector<float>(20, 1.0f));
  }
}

TEST(Sampler, WithoutReplacementRepeatsNoRow) {
  for (const uint64_t size : {1, 2, 63, 64, 65, 100, 1000}) {
    const ReplayBuffer buffer = numbered(size, size + 5);
    Sampler sampler(buffer, 1);
    for (size_t rows = size; rows > 0; rows /= 3) {
      const Rows drawn = draw(sampler, {.rows = rows, .rule = Rule::kWithoutReplacement});
      const std::set<uint64_t> ids(drawn.ids.begin(), drawn.ids.end());
      EXPECT_EQ(ids.size(), rows);
      EXPECT_EQ(drawn.numbers, drawn.ids);
      EXPECT_GE(*ids.begin(), 5u);
      EXPECT_LT(*ids.rbegin(), size + 5);
    }
  }
}

TEST(Sampler, WithoutReplacementIsUniformInEveryPosition) {
  const ReplayBuffer buffer = numbered(10, 10);
  Sampler sampler(buffer, 1);
  std::vector<std::vector<uint64_t>> places(4, std::vector<uint64_t>(10));
  for (int call = 0; call < 20000; ++call) {
    const Rows rows = draw(sampler, {.rows = 4, .rule = Rule::kWithoutReplacement});
    for (size_t i = 0; i < 4; ++i) ++places[i][rows.ids[i]];
  }
  for (const auto& counts : places) EXPECT_LT(misfit(counts, std::vector<double>(10, 1.0)), 6);
}

TEST(Sampler, SameSeedSameRowsAndRestoreContinues) {
  Prioritised made(500, 0.6);
  std::vector<float> priorities(500);
  for (size_t i = 0; i < 500; ++i) priorities[i] = static_cast<float>(i % 7);
  add_numbers(made.buffer, 500, priorities);
  for (const Rule rule : {Rule::kUniform, Rule::kWithoutReplacement, Rule::kPrioritised, Rule::kRecent}) {
    const SampleRequest request = {.rows = 100, .rule = rule, .half_life = 50};
    Sampler one(made.buffer, 8), two(made.buffer, 8), other(made.buffer, 9);
    std::vector<Rows> calls;
    for (int i = 0; i < 6; ++i) {
      calls.push_back(draw(one, request));
      EXPECT_EQ(draw(two, request), calls.back());
      EXPECT_NE(draw(other, request), calls.back());
    }
    EXPECT_EQ(one.draws(), 6u);
    EXPECT_NE(calls[0], calls[1]);
    Sampler later(made.buffer, 8);
    later.restore(4);
    EXPECT_EQ(draw(later, request), calls[4]);
    EXPECT_EQ(draw(later, request), calls[5]);
    later.restore((uint64_t{1} << 32) + 4);  // all bits of the number of the call matter
    EXPECT_NE(draw(later, request), calls[4]);
  }
}

TEST(Sampler, ReturnsOnlyCompleteRows) {
  // Ids 0 to 9 are written, 10 to 14 lost with their writer, 15 to 19 written: the ring of 16 holds 4 to 9 and 15 to
  // 19, and in the slots of the lost ones what lay there before, or nothing.
  Prioritised made(16, 1.0);
  add_numbers(made.buffer, 10);
  made.buffer.ring().reserve(5);
  add_numbers(made.buffer, 5);
  std::vector<double> chances(16, 1.0);
  std::fill(chances.begin() + 6, chances.begin() + 11, 0.0);
  EXPECT_LT(misfit(tally(made.buffer, {.rows = 100}, 200, 4, 16), chances), 6);
  EXPECT_LT(misfit(tally(made.buffer, {.rows = 100, .rule = Rule::kPrioritised}, 200, 4, 16), chances), 6);
  EXPECT_LT(misfit(tally(made.buffer, {.rows = 11, .rule = Rule::kWithoutReplacement}, 200, 4, 16), chances), 6);
  Sampler sampler(made.buffer, 1);
  EXPECT_EQ(
      message_of([&] { draw(sampler, {.rows = 12, .rule = Rule::kWithoutReplacement}); }),
      "[replay] sample: without replacement: expected 12 times a row that can be read, found fewer among 16 rows");

  // Slots that were reserved again and not written hold rows from before the window: 4 and 5 here.
  made.buffer.ring().reserve(2);
  chances[0] = chances[1] = 0;
  EXPECT_LT(misfit(tally(made.buffer, {.rows = 100}, 200, 4, 16), chances), 6);
  EXPECT_LT(misfit(tally(made.buffer, {.rows = 100, .rule = Rule::kPrioritised}, 200, 4, 16), chances), 6);
  // The newest row that is there counts as the most recent, and its age tells how many came after.
  const Rows rows = draw(sampler, {.rows = 1, .rule = Rule::kRecent, .half_life = 0.01});
  EXPECT_EQ(rows.ids[0], 19u);
  EXPECT_EQ(rows.ages[0], 2u);

  made.buffer.ring().reserve(16);
  for (const Rule rule : {Rule::kUniform, Rule::kWithoutReplacement, Rule::kPrioritised, Rule::kRecent}) {
    EXPECT_EQ(message_of([&] { draw(sampler, {.rows = 1, .rule = rule, .half_life = 1}); }),
              "[replay] sample: expected at least one row in the buffer, found none");
  }
}

// A writer that overwrote the window during a call made the call fail: "expected 8 rows that can be read, found fewer".
TEST(Sampler, WithoutReplacementNewRowsReplaceOverwrittenOnes) {
  for (const uint64_t added : {1, 5, 10, 25}) {
    for (size_t drawn = 0; drawn < 10; ++drawn) {
      ReplayBuffer buffer = numbered(10, 10);
      Drawer drawer(buffer, {.rows = 10, .rule = Rule::kWithoutReplacement}, 1, 0);
      std::set<uint64_t> ids;
      while (ids.size() < drawn) ids.insert(drawer.next().id);
      add_numbers(buffer, added);
      for (uint64_t tries = 1; ids.size() < 10; ++tries) {
        const Drawn next = drawer.again(tries);
        if (!buffer.ring().holds(next.id)) continue;
        EXPECT_TRUE(ids.insert(next.id).second) << next.id;
        EXPECT_EQ(next.age, buffer.ring().window().end - 1 - next.id - (next.id < 10 ? added : 0));
      }
    }
  }
}

TEST(Sampler, WithoutReplacementAllRowsWhileOneIsBeingWritten) {
  ReplayBuffer buffer = numbered(10, 10);
  Sampler sampler(buffer, 1);
  const uint64_t id = buffer.ring().reserve(1);
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    buffer.ring().write(id, [&](uint64_t slot) { std::memcpy(buffer.stored(0, slot), &id, sizeof id); });
  });
  const Rows rows = draw(sampler, {.rows = 10, .rule = Rule::kWithoutReplacement});
  EXPECT_EQ(rows.numbers, rows.ids);
  EXPECT_EQ(std::set(rows.ids.begin(), rows.ids.end()).size(), 10u);
}

TEST(Sampler, WritesExactlyTheRequestedRows) {
  const ReplayBuffer buffer = numbered(300, 300);
  for (const size_t rows : {1, 2, 63, 64, 65, 127, 128, 129, 300}) {
    Sampler sampler(buffer, rows);
    std::vector<uint64_t> numbers(rows + 1, 12345), ids(rows + 1, 12345);
    std::byte* const column = reinterpret_cast<std::byte*>(numbers.data());
    sampler.sample({.rows = rows}, {.columns = {&column, 1}, .ids = ids.data()});
    EXPECT_EQ(numbers, ids);
    EXPECT_EQ(numbers[rows], 12345u);
    EXPECT_TRUE(std::all_of(ids.begin(), ids.end() - 1, [](uint64_t id) { return id < 300; }));
  }
}

TEST(Sampler, ReadsEveryEncodingAndSkipsColumns) {
  const Schema schema(
      {{.name = "planes", .dtype = DType::kF32, .shape = {3, 50}, .encoding = Encoding::kBits},
       {.name = "value", .dtype = DType::kF64},
       {.name = "policy", .dtype = DType::kF32, .shape = {2000}, .encoding = Encoding::kSparse, .max_nonzero = 3},
       {.name = "raw", .dtype = DType::kU8, .shape = {9001}}});
  ReplayBuffer buffer = ReplayBuffer::create(schema, {.capacity = 40, .prefault = false});
  const auto planes = [](uint64_t id, size_t i) { return (id * 7 + i) % 3 == 0 ? 1.0f : 0.0f; };
  const auto policy = [](uint64_t id, size_t i) { return i % 700 == id ? 0.5f + static_cast<float>(id) : 0.0f; };
  const auto raw = [](uint64_t id, size_t i) { return static_cast<uint8_t>(id * 31 + i / 100); };
  std::vector<float> planes_of(150), policy_of(2000);
  std::vector<uint8_t> raw_of(9001);
  for (uint64_t id = 0; id < 40; ++id) {
    for (size_t i = 0; i < 150; ++i) planes_of[i] = planes(id, i);
    for (size_t i = 0; i < 2000; ++i) policy_of[i] = policy(id, i);
    for (size_t i = 0; i < 9001; ++i) raw_of[i] = raw(id, i);
    const auto value = static_cast<double>(id);
    const std::byte* const columns[] = {
        reinterpret_cast<const std::byte*>(planes_of.data()), reinterpret_cast<const std::byte*>(&value),
        reinterpret_cast<const std::byte*>(policy_of.data()), reinterpret_cast<const std::byte*>(raw_of.data())};
    buffer.add(columns, 1);
  }
  Sampler sampler(buffer, 2);
  constexpr size_t kRows = 70;
  std::vector<float> got_planes(kRows * 150), got_policy(kRows * 2000);
  std::vector<uint8_t> got_raw(kRows * 9001);
  std::vector<uint64_t> ids(kRows);
  std::byte* const columns[] = {reinterpret_cast<std::byte*>(got_planes.data()), nullptr,
                                reinterpret_cast<std::byte*>(got_policy.data()),
                                reinterpret_cast<std::byte*>(got_raw.data())};
  sampler.sample({.rows = kRows}, {.columns = columns, .ids = ids.data()});
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < 150; ++i) ASSERT_EQ(got_planes[r * 150 + i], planes(ids[r], i));
    for (size_t i = 0; i < 2000; ++i) ASSERT_EQ(got_policy[r * 2000 + i], policy(ids[r], i));
    for (size_t i = 0; i < 9001; ++i) ASSERT_EQ(got_raw[r * 9001 + i], raw(ids[r], i));
  }
}

TEST(Sampler, RejectsImpossibleRequests) {
  ReplayBuffer buffer = numbered(10, 0);
  Sampler sampler(buffer, 1);
  const auto message = [&](const SampleRequest& request) { return message_of([&] { draw(sampler, request); }); };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message({.rows = 1}), "[replay] sample: expected at least one row in the buffer, found none");
  add_numbers(buffer, 7);
  EXPECT_EQ(message({.rows = 0}), "[replay] sample: expected 1 row or more, found 0");
  EXPECT_EQ(message({.rows = 8, .rule = Rule::kWithoutReplacement}),
            "[replay] sample: without replacement: expected at least 8 rows in the buffer, found 7");
  EXPECT_EQ(message({.rows = 1, .rule = Rule::kPrioritised}),
            "[replay] sample: expected a prioritised buffer, found one that is not");
  for (const double half_life : {0.0, -1.0, nan, infinity}) {
    EXPECT_EQ(message({.rows = 1, .rule = Rule::kRecent, .half_life = half_life}),
              fmt::format("[replay] sample: half_life: expected a finite number above 0, found {}", half_life));
  }
  EXPECT_EQ(message_of([&] { sampler.sample({.rows = 1}, {}); }), "[replay] sample: expected 1 columns, found 0");
  EXPECT_EQ(sampler.draws(), 0u) << "calls that failed do not count";

  Prioritised made(10, 1.0);
  add_numbers(made.buffer, 3, std::vector<float>(3, 0.0f));
  Sampler prioritised(made.buffer, 1);
  EXPECT_EQ(message_of([&] { draw(prioritised, {.rows = 1, .rule = Rule::kPrioritised}); }),
            "[replay] sample: expected a row with a priority above 0, found none");
  for (const double beta : {-1.0, nan, infinity}) {
    EXPECT_EQ(message_of([&] { draw(prioritised, {.rows = 1, .rule = Rule::kPrioritised, .beta = beta}); }),
              fmt::format("[replay] sample: beta: expected a finite number, 0 or more, found {}", beta));
  }
}

TEST(Numbers, BelowIsExactlyUniform) {
  // Without leaving out the first products, of 3 * 2^62 numbers those that 3 divides would be twice as likely.
  Numbers numbers(4, 0);
  std::vector<uint64_t> counts(3);
  for (int i = 0; i < 30000; ++i) ++counts[numbers.below(uint64_t{3} << 62) % 3];
  EXPECT_LT(misfit(counts, std::vector<double>(3, 1.0)), 6);
  EXPECT_EQ(numbers.below(1), 0u);
}

// The same on every machine and in every version: seed and number of the call are enough to repeat a run.
TEST(Numbers, AreReproducibleEverywhere) {
  const ReplayBuffer buffer = numbered(1000, 1000);
  Sampler sampler(buffer, 42);
  draw(sampler, {.rows = 1});
  EXPECT_EQ(draw(sampler, {.rows = 6}).ids, (std::vector<uint64_t>{229, 8, 551, 413, 899, 486}));
  EXPECT_EQ(draw(sampler, {.rows = 6, .rule = Rule::kWithoutReplacement}).ids,
            (std::vector<uint64_t>{944, 689, 259, 821, 934, 509}));
}

}  // namespace
}  // namespace quern::replay
