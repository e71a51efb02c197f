#include "chat/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace quern::chat {
namespace {

using Row = std::vector<uint32_t>;

std::vector<Row> rows_of(const RowPlan& plan) {
  std::vector<Row> rows;
  for (size_t i = 0; i < plan.size(); ++i) rows.emplace_back(plan.row(i).begin(), plan.row(i).end());
  return rows;
}

uint32_t up_to(uint32_t limit, std::mt19937& random) { return 1 + static_cast<uint32_t>(random() % limit); }

// First-fit decreasing as it is defined.
std::vector<Row> simple_rows(const std::vector<uint32_t>& lengths, uint32_t capacity) {
  Row order(lengths.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });
  std::vector<Row> rows;
  std::vector<uint32_t> used;
  for (const uint32_t sequence : order) {
    size_t row = 0;
    while (row < rows.size() && used[row] + lengths[sequence] > capacity) ++row;
    if (row == rows.size()) {
      rows.emplace_back();
      used.push_back(0);
    }
    rows[row].push_back(sequence);
    used[row] += lengths[sequence];
  }
  for (Row& row : rows) std::sort(row.begin(), row.end());
  return rows;
}

TEST(Packing, LongSequencesFirst) {
  const std::vector<uint32_t> lengths = {3, 8, 5, 2, 6, 1};
  EXPECT_EQ(rows_of(pack_rows(lengths, 8)), (std::vector<Row>{{1}, {3, 4}, {0, 2}, {5}}));
}

TEST(Packing, SmallPlans) {
  EXPECT_EQ(pack_rows({}, 8).size(), 0u);
  EXPECT_EQ(rows_of(pack_rows(std::vector<uint32_t>{8}, 8)), (std::vector<Row>{{0}}));
  EXPECT_EQ(rows_of(pack_rows(std::vector<uint32_t>{1, 1, 1}, 1)), (std::vector<Row>{{0}, {1}, {2}}));
  EXPECT_EQ(rows_of(one_per_row(3)), (std::vector<Row>{{0}, {1}, {2}}));
  EXPECT_EQ(one_per_row(0).size(), 0u);
}

TEST(Packing, AgreesWithTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const uint32_t capacity = up_to(100, random);
    std::vector<uint32_t> lengths(random() % 300);
    for (uint32_t& length : lengths) length = up_to(round % 2 == 0 ? capacity : 1 + capacity / 4, random);
    EXPECT_EQ(rows_of(pack_rows(lengths, capacity)), simple_rows(lengths, capacity));
  }
}

TEST(Packing, AMillionSequences) {
  constexpr uint32_t kCapacity = 2048;
  std::mt19937 random(2);
  std::vector<uint32_t> lengths(1'000'000);
  for (uint32_t& length : lengths) length = up_to(800, random);
  const RowPlan plan = pack_rows(lengths, kCapacity);
  std::vector<uint8_t> seen(lengths.size(), 0);
  for (size_t i = 0; i < plan.size(); ++i) {
    uint64_t used = 0;
    for (const uint32_t sequence : plan.row(i)) {
      used += lengths[sequence];
      ++seen[sequence];
    }
    ASSERT_LE(used, kCapacity);
    ASSERT_TRUE(std::ranges::is_sorted(plan.row(i)));
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](uint8_t count) { return count == 1; }));
  const uint64_t total = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  EXPECT_LE(plan.size(), total / kCapacity * 101 / 100 + 1);  // almost no padding
  EXPECT_EQ(rows_of(pack_rows(lengths, kCapacity)), rows_of(plan));
}

}  // namespace
}  // namespace quern::chat
