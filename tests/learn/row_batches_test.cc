#include "learn/row_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/error.h"
#include "games/game.h"
#include "selfplay/rows.h"
#include "support/message.h"

namespace quern::learn {
namespace {

// Rows that can be told apart: the first plane of row n has n + 1 at every square, and the policy is on one action.
class RowBatchesTest : public ::testing::Test {
 protected:
  void add_rows(size_t n) {
    const games::GameSpec& spec = game_->spec();
    for (size_t i = 0; i < n; ++i) {
      std::vector<float> planes(spec.planes * spec.squares()), policy(spec.actions, 0.0f);
      const std::vector<float> outcome = {1, 0, 0};
      for (size_t s = 0; s < spec.squares(); ++s)
        planes[s] = 100 * static_cast<float>(added_ + 1) + static_cast<float>(s);
      policy[0] = 1;
      const std::array columns = {std::as_bytes(std::span(planes)).data(), std::as_bytes(std::span(policy)).data(),
                                  std::as_bytes(std::span(outcome)).data()};
      buffer_.add(columns, 1);
      ++added_;
    }
  }

  data::Batch read(const RowBatches& source, uint32_t step, uint32_t first, uint32_t sequences) {
    data::Batch batch;
    batch.step = step;
    batch.first = first;
    batch.sequences = sequences;
    batch.columns = Columns(source.columns(), sequences);
    source.reader({})->read(batch);
    return batch;
  }

  std::unique_ptr<games::Game> game_ = games::make_game("tictactoe");
  replay::ReplayBuffer buffer_ = replay::ReplayBuffer::create(selfplay::row_schema(game_->spec()), {.capacity = 50});
  size_t added_ = 0;
};

using data::Batch;

TEST_F(RowBatchesTest, ASampleDoesNotDependOnTheBatchItIsReadIn) {
  add_rows(30);
  const RowBatches source(*game_, buffer_, {.seed = 7});
  const Batch whole = read(source, 3, 0, 20);
  const size_t width = game_->spec().planes * game_->spec().squares();
  for (const uint32_t first : {0u, 7u, 13u}) {
    const Batch part = read(source, 3, first, 7);
    const auto expected = whole.columns.floats(kPlanesColumn).subspan(first * width, 7 * width);
    EXPECT_TRUE(std::ranges::equal(part.columns.floats(kPlanesColumn), expected)) << first;
  }
  EXPECT_NE(read(source, 4, 0, 20).columns, whole.columns);
  EXPECT_NE(read(RowBatches(*game_, buffer_, {.seed = 8}), 3, 0, 20).columns, whole.columns);
}

// The number of a row in its first plane, whatever symmetry it is seen under.
std::set<int> rows_in(const Batch& batch, const games::GameSpec& spec) {
  std::set<int> rows;
  const auto planes = batch.columns.floats(kPlanesColumn);
  for (size_t i = 0; i < batch.sequences; ++i) {
    rows.insert(static_cast<int>(planes[i * spec.planes * spec.squares()]) / 100 - 1);
  }
  return rows;
}

TEST_F(RowBatchesTest, EveryRowThatIsStillThereIsDrawn) {
  add_rows(70);  // the first 20 were overwritten
  const std::set<int> rows = rows_in(read(RowBatches(*game_, buffer_, {}), 0, 0, 2000), game_->spec());
  EXPECT_EQ(rows.size(), 50u);
  EXPECT_EQ(*rows.begin(), 20);
}

TEST_F(RowBatchesTest, SymmetriesPermuteTheSquares) {
  add_rows(1);
  const auto corners = [&](bool symmetries) {
    std::set<float> found;
    const Batch batch = read(RowBatches(*game_, buffer_, {.symmetries = symmetries}), 0, 0, 200);
    const size_t width = game_->spec().planes * game_->spec().squares();
    for (size_t i = 0; i < 200; ++i) found.insert(batch.columns.floats(kPlanesColumn)[i * width]);
    return found;
  };
  EXPECT_EQ(corners(false), (std::set<float>{100}));
  EXPECT_EQ(corners(true), (std::set<float>{100, 102, 106, 108}));  // the four corners of the board
}

TEST_F(RowBatchesTest, SamplesAreCounted) {
  add_rows(5);
  read(RowBatches(*game_, buffer_, {}), 0, 0, 12);
  EXPECT_EQ(buffer_.total_sampled(), 12u);
}

TEST_F(RowBatchesTest, AnEmptyBufferAndOneOfAnotherGameAreErrors) {
  const RowBatches source(*game_, buffer_, {});
  EXPECT_NE(test::message_of([&] { read(source, 0, 0, 1); }).find("expected positions in the replay buffer"),
            std::string::npos);
  const auto connect4 = games::make_game("connect4");
  EXPECT_NE(test::message_of([&] { RowBatches(*connect4, buffer_, {}); }).find("planes"), std::string::npos);
}

// In a buffer that changes, rows of a step that is far away would be old when it comes.
TEST_F(RowBatchesTest, AReaderIsAtMostOneStepAhead) {
  add_rows(5);
  ReadAhead ahead;
  const RowBatches source(*game_, buffer_, {.ahead = &ahead});
  const std::unique_ptr<data::BatchReader> reader = source.reader({});
  data::Batch batch;
  batch.sequences = 2;
  batch.columns = Columns(source.columns(), 2);
  const auto read_step = [&](uint32_t step) {
    for (batch.step = step, batch.first = 0; batch.first < 4; batch.first += 2) reader->read(batch);
  };
  read_step(7);  // the next step, whatever its number
  ahead.begin_step();
  read_step(8);
  ahead.close();
  EXPECT_THROW(read_step(9), ReadAhead::Closed);
  EXPECT_EQ(buffer_.total_sampled(), 8u);
}

TEST_F(RowBatchesTest, RowsOfOthersAreChecked) {
  const games::GameSpec& spec = game_->spec();
  const auto error_of = [&](float plane, std::vector<float> policy, std::vector<float> outcome) {
    std::vector<float> planes(spec.planes * spec.squares(), plane);
    policy.resize(spec.actions, -1.0f);
    const std::array columns = {std::as_bytes(std::span(planes)).data(), std::as_bytes(std::span(policy)).data(),
                                std::as_bytes(std::span(outcome)).data()};
    replay::ReplayBuffer buffer = replay::ReplayBuffer::create(selfplay::row_schema(spec), {.capacity = 1});
    buffer.add(columns, 1);
    read(RowBatches(*game_, buffer, {}), 0, 0, 1);
    return test::message_of([&] { read(RowBatches(*game_, buffer, {.checked = true}), 0, 0, 1); });
  };
  EXPECT_EQ(error_of(0, {0.5f, 0.5f}, {0, 1, 0}), "no error");
  EXPECT_EQ(error_of(NAN, {1}, {0, 1, 0}),
            "[selfplay] row 0 of the buffer: planes: expected finite numbers, found nan");
  EXPECT_EQ(error_of(0, {0.5f}, {0, 1, 0}), "[selfplay] row 0 of the buffer: policy: expected a sum of 1, found 0.5");
  EXPECT_EQ(error_of(0, {}, {0, 1, 0}), "[selfplay] row 0 of the buffer: policy: expected a sum of 1, found 0");
  EXPECT_EQ(error_of(0, {1.5f, -0.5f}, {0, 1, 0}),
            "[selfplay] row 0 of the buffer: policy: expected shares from 0 to 1, or -1 for a move that is not legal, "
            "found -0.5");
  EXPECT_EQ(error_of(0, {1}, {2, -1, 0}), "[selfplay] row 0 of the buffer: outcome: expected probabilities, found -1");
  EXPECT_EQ(error_of(0, {1}, {1, 1, 0}), "[selfplay] row 0 of the buffer: outcome: expected a sum of 1, found 2");
}

}  // namespace
}  // namespace quern::learn
