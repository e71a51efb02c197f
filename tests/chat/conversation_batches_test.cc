#include "chat/conversation_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "kernels/cross_entropy.h"
#include "tests/data/files.h"
#include "tests/support/allocations.h"

namespace quern::chat {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using Ints = std::vector<int32_t>;

static_assert(kNoTarget == kernels::kIgnoreTarget);

constexpr uint32_t kContext = 16;

struct Columns {
  explicit Columns(size_t rows)
      : tokens(rows * kContext, -7), targets(rows * kContext, -7), positions(rows * kContext, -7) {}
  RowColumns refs() { return {tokens.data(), targets.data(), positions.data()}; }
  bool operator==(const Columns&) const = default;

  Ints tokens, targets, positions;
};

// Ids are unique over all sequences.
std::vector<MarkedTokens> random_sequences(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<MarkedTokens> all(count);
  int32_t id = 1;
  for (MarkedTokens& one : all) {
    const size_t length = 2 + random() % kContext;
    for (size_t i = 0; i < length; ++i) {
      one.ids.push_back(id++);
      one.trained.push_back(i + 1 == length || random() % 3 == 0 ? 1 : 0);
    }
  }
  return all;
}

TEST(ConversationRows, FillsPackedRows) {
  const ConversationRows rows({{{5, 6, 7}, {0, 1, 1}}, {{8, 9}, {1, 1}}}, 5, true);
  ASSERT_EQ(rows.size(), 1u);
  Ints tokens(5), targets(5), positions(5);
  rows.fill(0, {tokens.data(), targets.data(), positions.data()});
  EXPECT_EQ(tokens, (Ints{5, 6, 8, 0, 0}));
  EXPECT_EQ(targets, (Ints{6, 7, 9, -1, -1}));
  EXPECT_EQ(positions, (Ints{0, 1, 0, 0, 1}));
  EXPECT_EQ(rows.targets(0), 3u);
  rows.fill_empty({tokens.data(), targets.data(), positions.data()});
  EXPECT_EQ(tokens, Ints(5, 0));
  EXPECT_EQ(targets, Ints(5, -1));
  EXPECT_EQ(positions, (Ints{0, 1, 2, 3, 4}));
}

TEST(ConversationRows, UntrainedTokensAreNoTargets) {
  const ConversationRows rows({{{5, 6, 7, 8}, {0, 0, 1, 0}}, {{1, 2}, {0, 1}}}, 4, false);
  ASSERT_EQ(rows.size(), 2u);
  Ints tokens(4), targets(4), positions(4);
  rows.fill(0, {tokens.data(), targets.data(), positions.data()});
  EXPECT_EQ(targets, (Ints{-1, 7, -1, -1}));
}

TEST(ConversationRows, ErrorsOfSequences) {
  EXPECT_TRUE(contains(error_of([] { ConversationRows({}, 4, true); }), "found none"));
  for (const size_t length : {1, 6}) {
    const MarkedTokens one{Ints(length, 1), std::vector<uint8_t>(length, 1)};
    EXPECT_TRUE(contains(error_of([&] { ConversationRows({one}, 4, true); }), "expected sequences of 2 to 5 tokens"));
  }
}

class ConversationBatchesOf : public ::testing::TestWithParam<bool> {
 protected:
  ConversationRows rows_{random_sequences(100, 1), kContext, GetParam()};

  Columns step(const ConversationBatches& batches, uint32_t step, uint32_t rows) const {
    Columns columns(rows);
    batches.fill(step, 0, rows, columns.refs());
    return columns;
  }
};

TEST_P(ConversationBatchesOf, RowsAreAPureFunctionOfStepAndIndex) {
  const ConversationBatches batches(rows_, {.seed = 3, .rows_per_step = 7});
  for (const uint32_t step : {5u, 0u, 40u}) {
    Columns whole(7), parts(7);
    batches.fill(step, 0, 7, whole.refs());
    for (const uint32_t i : {6u, 2u, 0u, 1u, 5u, 3u, 4u}) batches.fill(step, i, 1, parts.refs().at(i * kContext));
    EXPECT_EQ(whole, parts);
  }
  const ConversationBatches other(rows_, {.seed = 4, .rows_per_step = 7});
  EXPECT_NE(step(batches, 0, 7), step(other, 0, 7));
}

TEST_P(ConversationBatchesOf, EveryEpochHasEveryRowOnceInAnotherOrder) {
  const ConversationBatches batches(rows_, {.seed = 3, .rows_per_step = 1});
  const auto rows = static_cast<uint32_t>(rows_.size());
  std::vector<std::vector<Ints>> epochs(2);
  for (uint32_t s = 0; s < 2 * rows; ++s) epochs[s / rows].push_back(step(batches, s, 1).tokens);
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) std::sort(epoch.begin(), epoch.end());
  EXPECT_EQ(epochs[0], epochs[1]);
  EXPECT_EQ(std::set(epochs[0].begin(), epochs[0].end()).size(), rows);
}

TEST_P(ConversationBatchesOf, AStageStartsWhereTheOneBeforeItEnded) {
  const ConversationBatches from_start(rows_, {.seed = 3, .rows_per_step = 4});
  const ConversationBatches later(rows_, {.seed = 3, .rows_per_step = 2, .first_step = 10, .first_sequence = 40});
  Columns expected = step(from_start, 10, 4), found(4);
  later.fill(10, 0, 2, found.refs());
  later.fill(11, 0, 2, found.refs().at(2 * kContext));
  EXPECT_EQ(found, expected);
}

TEST_P(ConversationBatchesOf, RowsAfterTheLastEpochAreEmpty) {
  const ConversationBatches batches(rows_, {.seed = 3, .rows_per_step = 8, .epochs = 3});
  uint64_t targets = 0, counted = 0;
  for (uint32_t s = 0; s < batches.steps() + 2; ++s) {
    const Columns columns = step(batches, s, 8);
    const auto ignored = std::count(columns.targets.begin(), columns.targets.end(), kNoTarget);
    targets += columns.targets.size() - static_cast<size_t>(ignored);
    counted += batches.step_targets(s);
    EXPECT_EQ(batches.step_targets(s) == 0, s >= batches.steps()) << s;
  }
  uint64_t once = 0;
  for (size_t row = 0; row < rows_.size(); ++row) once += rows_.targets(row);
  EXPECT_EQ(targets, 3 * once);
  EXPECT_EQ(counted, 3 * once);
  EXPECT_EQ(batches.steps(), (3 * rows_.size() + 7) / 8);
  EXPECT_EQ(batches.steps_per_epoch(), (rows_.size() + 7) / 8);
}

TEST_P(ConversationBatchesOf, ReadersCountTheTargetsOfTheWholeStep) {
  const ConversationBatches batches(rows_, {.seed = 3, .rows_per_step = 6});
  EXPECT_EQ(batches.columns(), (std::vector<ColumnSpec>{{kTokensColumn, ColumnType::kInt32, kContext},
                                                        {kTargetsColumn, ColumnType::kInt32, kContext},
                                                        {kPositionsColumn, ColumnType::kInt32, kContext}}));
  const auto reader = batches.reader({});
  for (uint32_t s = 0; s < 3; ++s) {
    const Columns whole = step(batches, s, 6);
    for (uint32_t first = 0; first < 6; first += 2) {
      data::Batch batch{.step = s,
                        .first = first,
                        .sequences = 2,
                        .counted_targets = 6 * kContext,
                        .columns = ::quern::Columns(batches.columns(), 2),
                        .after = {}};
      const size_t before = ::quern::test::allocation_count;
      reader->read(batch);
      EXPECT_EQ(::quern::test::allocation_count, before);
      EXPECT_EQ(batch.counted_targets, batches.step_targets(s));
      const auto part = batch.columns.ints(kPositionsColumn);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.positions.begin() + first * kContext));
    }
  }
}

TEST_P(ConversationBatchesOf, ValidationRowsAreInOrder) {
  const ValidationRows all(rows_), some(rows_, 5);
  EXPECT_EQ(all.windows(), rows_.size());
  EXPECT_EQ(some.windows(), 5u);
  Columns found(5), expected(5);
  some.fill(0, 3, {found.tokens.data(), found.targets.data(), found.positions.data()});
  const RowColumns rest = found.refs().at(3 * kContext);
  some.fill(3, 2, {rest.tokens, rest.targets, rest.positions});
  uint64_t targets = 0;
  for (size_t row = 0; row < 5; ++row) {
    rows_.fill(row, expected.refs().at(row * kContext));
    targets += rows_.targets(row);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(some.targets(), targets);
}

INSTANTIATE_TEST_SUITE_P(Packed, ConversationBatchesOf, ::testing::Bool());

// What a target is predicted from, by id: the ids of its own sequence before it.
std::map<int32_t, Ints> contexts(const ConversationRows& rows) {
  std::map<int32_t, Ints> found;
  for (size_t row = 0; row < rows.size(); ++row) {
    Columns columns(1);
    rows.fill(row, columns.refs());
    for (size_t t = 0; t < kContext; ++t) {
      if (columns.targets[t] == kNoTarget) continue;
      const auto end = columns.tokens.begin() + static_cast<ptrdiff_t>(t) + 1;
      found[columns.targets[t]] = Ints(end - columns.positions[t] - 1, end);
    }
  }
  return found;
}

TEST(ConversationRows, PackingChangesNoTargetAndNoContext) {
  const std::vector<MarkedTokens> sequences = random_sequences(300, 2);
  const ConversationRows packed(sequences, kContext, true), single(sequences, kContext, false);
  EXPECT_LT(packed.size(), single.size() * 3 / 4);
  EXPECT_EQ(contexts(packed), contexts(single));
  uint64_t targets = 0;
  for (const MarkedTokens& one : sequences) targets += one.targets();
  EXPECT_EQ(contexts(packed).size(), targets);
}

TEST(ConversationBatches, AStepNeedsRows) {
  const ConversationRows rows(random_sequences(3, 1), kContext, true);
  EXPECT_TRUE(contains(error_of([&] { ConversationBatches(rows, {}); }), "at least 1 sequence per step"));
}

}  // namespace
}  // namespace quern::chat
