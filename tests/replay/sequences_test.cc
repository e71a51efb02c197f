// Sequences: consecutive rows of one episode, drawn uniformly over their first rows.
#include <gtest/gtest.h>

#include <map>

#include "replay/sequences.h"
#include "replay/snapshot.h"
#include "tests/replay/episode_rows.h"
#include "tests/support/message.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::Actor;
using test::EpisodeRows;

// The rows of a call, with the outputs of all kinds.
struct Drawn {
  Drawn(size_t count, size_t length)
      : rows(count * length), ids(count * length), mask(count * length), lengths(count), ages(count), weights(count) {}

  SequenceArrays arrays(std::span<std::byte* const> columns) {
    return {columns, ids.data(), reinterpret_cast<bool*>(mask.data()), lengths.data(), ages.data(), weights.data()};
  }

  EpisodeRows rows;
  std::vector<uint64_t> ids;
  std::vector<uint8_t> mask;
  std::vector<uint64_t> lengths, ages;
  std::vector<float> weights;
};

Drawn draw(const ReplayBuffer& buffer, const SequenceRequest& request, uint64_t seed = 1, uint64_t call = 0) {
  Drawn drawn(request.starts.rows, request.length);
  const std::vector<std::byte*> columns = drawn.rows.outputs();
  admit_sequences(buffer, request, drawn.arrays(columns));
  sample_sequences(buffer, request, drawn.arrays(columns), seed, call);
  return drawn;
}

ReplayBuffer make(uint64_t capacity, bool prioritised = false) {
  return ReplayBuffer::create(test::episode_schema(), test::episode_options(capacity, prioritised));
}

// Adds `rows` rows of each actor, one at a time and in turn, so that consecutive ids are of different actors.
void add_in_turn(ReplayBuffer& buffer, uint64_t actors, size_t rows) {
  std::vector<Actor> all;
  std::vector<Streams> streams(actors, Streams(1));
  for (uint64_t a = 0; a < actors; ++a) all.emplace_back(a);
  EpisodeRows row;
  for (size_t i = 0; i < rows; ++i) {
    for (uint64_t a = 0; a < actors; ++a) {
      all[a].fill(row, 1);
      buffer.add(row.inputs(), 1, {}, {}, streams[a].get());
    }
  }
}

void expect_good(const Drawn& drawn, size_t length) {
  for (size_t i = 0; i < drawn.lengths.size(); ++i) {
    ASSERT_EQ(test::fault_in(drawn.rows, i * length, drawn.lengths[i]), "") << "sequence " << i;
  }
}

TEST(Sequences, AreRowsOfOneEpisodeOfInterleavedActors) {
  ReplayBuffer buffer = make(5000);
  add_in_turn(buffer, 7, 2000);  // wraps
  for (const size_t length : {1, 2, 5, 20}) {
    const Drawn drawn = draw(buffer, {.starts = {.rows = 1000}, .length = length});
    expect_good(drawn, length);
    for (const uint64_t found : drawn.lengths) EXPECT_EQ(found, length);
    for (const uint8_t present : drawn.mask) EXPECT_EQ(present, 1);
  }
}

// The first rows, counted over many draws, against the exact list of the valid ones.
TEST(Sequences, EveryValidStartIsDrawnEquallyOften) {
  ReplayBuffer buffer = make(64);
  add_in_turn(buffer, 3, 40);
  constexpr size_t kLength = 4, kDraws = 200000;
  std::map<uint64_t, size_t> counts;
  const Drawn drawn = draw(buffer, {.starts = {.rows = kDraws}, .length = kLength});
  for (size_t i = 0; i < kDraws; ++i) ++counts[drawn.ids[i * kLength]];
  EpisodeRows row;
  size_t valid = 0;
  for (uint64_t id = buffer.ring().window().begin; id < buffer.ring().window().end; ++id) {
    ASSERT_TRUE(buffer.read(id, row.outputs()));
    const bool complete = row.step[0] + kLength <= test::length_of(row.actor[0], row.episode[0]);
    const bool added = id + 3 * (kLength - 1) < buffer.ring().window().end;
    EXPECT_EQ(counts.contains(id), complete && added) << id;
    valid += complete && added ? 1 : 0;
  }
  ASSERT_GT(valid, 10u);
  const double expected = static_cast<double>(kDraws) / static_cast<double>(valid);
  for (const auto& [id, count] : counts) {
    EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected)) << id;
  }
}

TEST(Sequences, PaddingDrawsEveryRowAndMarksWhatIsMissing) {
  ReplayBuffer buffer = make(64);
  add_in_turn(buffer, 2, 100);
  constexpr size_t kLength = 6;
  const Drawn drawn = draw(buffer, {.starts = {.rows = 5000}, .length = kLength, .pad = true});
  expect_good(drawn, kLength);
  std::map<uint64_t, size_t> starts;
  for (size_t i = 0; i < 5000; ++i) {
    ++starts[drawn.ids[i * kLength]];
    const size_t first = i * kLength;
    const uint64_t left = test::length_of(drawn.rows.actor[first], drawn.rows.episode[first]) - drawn.rows.step[first];
    const uint64_t added = (buffer.ring().window().end - 1 - drawn.ids[first]) / 2 + 1;
    EXPECT_EQ(drawn.lengths[i], std::min<uint64_t>({kLength, left, added}));
    for (size_t k = 0; k < kLength; ++k) {
      const bool there = k < drawn.lengths[i];
      EXPECT_EQ(drawn.mask[first + k], there ? 1 : 0);
      EXPECT_EQ(drawn.ids[first + k] == kNoRow, !there);
      if (there) continue;
      EXPECT_EQ(drawn.rows.reward[first + k], 0);
      EXPECT_EQ(drawn.rows.step[first + k], 0u);
    }
  }
  EXPECT_EQ(starts.size(), 64u);
}

TEST(Sequences, OneBatchMayHoldTheRowsOfSeveralStreams) {
  ReplayBuffer buffer = make(1000);
  constexpr size_t kStreams = 4;
  std::vector<Actor> actors;
  for (uint64_t a = 0; a < kStreams; ++a) actors.emplace_back(a);
  Streams streams(kStreams);
  EpisodeRows batch(kStreams);
  for (int i = 0; i < 100; ++i) {
    for (uint64_t a = 0; a < kStreams; ++a) {
      EpisodeRows row;
      actors[a].fill(row, 1);
      batch.actor[a] = row.actor[0], batch.episode[a] = row.episode[0], batch.step[a] = row.step[0];
      batch.reward[a] = row.reward[0], batch.terminal[a] = row.terminal[0], batch.truncated[a] = row.truncated[0];
    }
    buffer.add(batch.inputs(), kStreams, {}, {}, streams.get());
  }
  expect_good(draw(buffer, {.starts = {.rows = 2000}, .length = 5}), 5);
}

TEST(Sequences, AResetStreamBeginsAnEpisode) {
  ReplayBuffer buffer = make(100);
  Actor actor(1);  // episodes of 6, 17, ... rows
  Streams streams(1);
  EpisodeRows rows(3);
  for (int i = 0; i < 20; ++i) {
    actor.fill(rows, 3);
    actor.abandon();
    buffer.add(rows.inputs(), 3, {}, {}, streams.get());
    streams.reset();
  }
  expect_good(draw(buffer, {.starts = {.rows = 500}, .length = 3}), 3);
  EXPECT_EQ(
      test::message_of([&] { draw(buffer, {.starts = {.rows = 1}, .length = 4}); }),
      "[replay] sample: expected a row with 3 more in its episode, found none in 1048576 draws from a window of 60");
}

TEST(Sequences, RowsWithoutAStreamAreOnTheirOwn) {
  ReplayBuffer buffer = make(100);
  Actor actor(1);
  EpisodeRows rows(5);
  actor.fill(rows, 5);
  buffer.add(rows.inputs(), 5);
  const Drawn drawn = draw(buffer, {.starts = {.rows = 100}, .length = 3, .pad = true});
  for (const uint64_t length : drawn.lengths) EXPECT_EQ(length, 1u);
}

// A place that is skipped, as by a row that was not stored, ends the sequences before it.
TEST(Sequences, AMissingRowBreaksTheEpisode) {
  ReplayBuffer buffer = make(100);
  Actor actor(4);  // the first episode has 21 rows
  Streams streams(1);
  EpisodeRows rows(20);
  actor.fill(rows, 20);
  buffer.add(rows.inputs(), 20, {}, {}, streams.get());
  const uint64_t gone = 10;
  buffer.ring().write(gone + 100, [&](uint64_t) {});  // another row takes its slot
  const Drawn drawn = draw(buffer, {.starts = {.rows = 2000}, .length = 5});
  for (const uint64_t id : drawn.ids) EXPECT_NE(id, gone);
  expect_good(drawn, 5);
}

// Whatever the hints say, rows of two episodes are never joined.
TEST(Sequences, WrongHintsDoNotJoinEpisodes) {
  ReplayBuffer buffer = make(64);
  add_in_turn(buffer, 3, 60);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 2000; ++i) {
    const Window window = buffer.ring().window();
    buffer.links()->connect(buffer.ring(), window.begin + generator() % 64, window.begin + generator() % 64);
    const Drawn drawn = draw(buffer, {.starts = {.rows = 20}, .length = 8, .pad = true}, 1, static_cast<uint64_t>(i));
    expect_good(drawn, 8);
  }
}

TEST(Sequences, PrioritiesDrawTheFirstRow) {
  ReplayBuffer buffer = make(200, true);
  add_in_turn(buffer, 2, 100);
  std::vector<uint64_t> ids;
  std::vector<float> priorities;
  for (uint64_t id = 0; id < 200; ++id) {
    ids.push_back(id);
    priorities.push_back(id == 30 || id == 32 ? 1.0f : 0.0f);  // actor 0: episode of 1, 12, 23, 11, ...
  }
  buffer.update_priorities(ids, priorities);
  const Drawn drawn = draw(buffer, {.starts = {.rows = 300, .rule = Rule::kPrioritised}, .length = 2});
  expect_good(drawn, 2);
  for (size_t i = 0; i < 300; ++i) EXPECT_TRUE(drawn.ids[2 * i] == 30 || drawn.ids[2 * i] == 32);
}

TEST(Sequences, SnapshotsKeepEpisodes) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = make(3000);
  add_in_turn(buffer, 5, 1500);
  ASSERT_EQ(save_snapshot(buffer, folder / "s").rows, 3000u);
  ReplayBuffer loaded = from_snapshot(folder / "s", {}, 0, {.threads = 2});
  EXPECT_EQ(loaded.options().terminal, "terminal");
  EXPECT_EQ(loaded.options().truncated, "truncated");
  for (uint64_t call = 0; call < 20; ++call) {  // the same draws, under new ids
    const SequenceRequest request{.starts = {.rows = 64}, .length = 7};
    const Drawn before = draw(buffer, request, 3, call), after = draw(loaded, request, 3, call);
    EXPECT_EQ(before.rows.actor, after.rows.actor);
    EXPECT_EQ(before.rows.episode, after.rows.episode);
    EXPECT_EQ(before.rows.step, after.rows.step);
  }
  load_snapshot(loaded, folder / "s");  // a second time: the episodes of both do not mix
  add_in_turn(loaded, 5, 50);
  expect_good(draw(loaded, {.starts = {.rows = 3000}, .length = 7}), 7);
  ReplayBuffer plain = ReplayBuffer::create(test::episode_schema(), {.capacity = 3000});
  EXPECT_EQ(load_snapshot(plain, folder / "s").rows, 3000u);
  save_snapshot(plain, folder / "plain");
  ReplayBuffer alone = make(3000);
  load_snapshot(alone, folder / "plain");
  const Drawn drawn = draw(alone, {.starts = {.rows = 100}, .length = 2, .pad = true});
  for (const uint64_t length : drawn.lengths) EXPECT_EQ(length, 1u);
}

TEST(Sequences, ErrorsSayWhatIsExpected) {
  ReplayBuffer plain = ReplayBuffer::create(test::episode_schema(), {.capacity = 10});
  EXPECT_EQ(test::message_of([&] { draw(plain, {.starts = {.rows = 1}, .length = 1}); }),
            "[replay] sample_sequences: expected a buffer with episodes, found one without; create it with "
            "terminal=\"name of a column\", truncated=\"name of a column\" or both");
  ReplayBuffer buffer = make(10);
  EXPECT_EQ(test::message_of([&] { draw(buffer, {.starts = {.rows = 1}, .length = 11}); }),
            "[replay] sample_sequences: length: expected 1 to 10 rows, found 11");
  EXPECT_EQ(test::message_of([&] { draw(buffer, {.starts = {.rows = 1}, .length = 2}); }),
            "[replay] sample: expected at least one row in the buffer, found none");
  EXPECT_EQ(test::message_of([&] {
              static_cast<void>(ReplayBuffer::create(test::episode_schema(), {.capacity = 1, .terminal = "reward"}));
            }),
            "[replay] terminal: column 'reward': expected bool or uint8, one number per row, found float32 ()");
}

// A buffer without episodes is the same bytes as before; one with episodes attaches with them.
TEST(Sequences, EpisodesAreAPropertyOfTheBuffer) {
  const test::TemporaryFolder folder;
  const Storage storage = Storage::in_file(folder / "rows");
  ReplayBuffer buffer = ReplayBuffer::create(test::episode_schema(), test::episode_options(100), storage);
  ReplayBuffer same = ReplayBuffer::attach(storage);
  EXPECT_EQ(same.options().terminal, "terminal");
  add_in_turn(buffer, 2, 30);
  add_in_turn(same, 2, 30);
  expect_good(draw(same, {.starts = {.rows = 500}, .length = 4}), 4);
}

}  // namespace
}  // namespace quern::replay
