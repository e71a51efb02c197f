// Episodes, bulk reads, statistics and lists of buffers through the C++ interface.
#include <gtest/gtest.h>
#include <quern/replay.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/message.h"
#include "tests/support/temporary_folder.h"

namespace quern {
namespace {

std::vector<Column> columns() { return {{"state", "float32", {2}}, {"reward", "float32"}, {"done", "bool"}}; }

// Episodes of `length` rows; row i of the actor has the state (i, actor) and the reward i.
void play(ReplayWriter& writer, float actor, int rows, int length) {
  for (int i = 0; i < rows; ++i) {
    const std::vector<float> state = {static_cast<float>(i), actor};
    const bool done = (i + 1) % length == 0;
    writer.add({{"state", state}, {"reward", static_cast<float>(i)}, {"done", done}});
  }
}

TEST(ReplayEpisodesApi, SequencesAndReturnsOfTwoActors) {
  ReplayBuffer buffer(columns(), {.capacity = 1000, .terminal = "done", .seed = 1});
  ReplayWriter first = buffer.writer(), second = buffer.writer();
  std::thread other([&] { play(second, 2, 300, 10); });
  play(first, 1, 300, 10);
  other.join();
  const SequenceSample sequences = buffer.sample_sequences(50, 4);
  const std::span<const float> states = sequences.rows.values<float>("state");
  ASSERT_EQ(states.size(), 50u * 4 * 2);
  for (size_t i = 0; i < 50; ++i) {
    const float* const start = &states[i * 8];
    for (size_t k = 1; k < 4; ++k) {
      EXPECT_EQ(start[2 * k], start[0] + static_cast<float>(k));
      EXPECT_EQ(start[2 * k + 1], start[1]);
    }
    EXPECT_LT(static_cast<int>(start[0]) % 10, 7);
  }
  const NStepSample steps = buffer.sample_n_step(100, {.n = 3, .gamma = 0.5, .next = {"state"}, .columns = {"state"}});
  for (size_t i = 0; i < 100; ++i) {
    const float at = steps.rows.values<float>("state")[2 * i];
    const int left = 10 - static_cast<int>(at) % 10;
    const bool ends = left <= 3;
    EXPECT_EQ(steps.steps[i], static_cast<uint64_t>(ends ? left : 3));
    EXPECT_EQ(steps.discounts[i], ends ? 0 : 0.125f);
    if (!ends) {
      EXPECT_EQ(steps.returns[i], at + 0.5f * (at + 1) + 0.25f * (at + 2));
      EXPECT_EQ(steps.next.values<float>("state")[2 * i], at + 3);
    }
  }
}

TEST(ReplayEpisodesApi, SeveralStreamsInOneBatch) {
  ReplayBuffer buffer(columns(), {.capacity = 100, .terminal = "done"});
  ReplayWriter writer = buffer.writer(2);
  for (int i = 0; i < 5; ++i) {
    const float at = static_cast<float>(i);
    const std::vector<float> states = {at, 1, at, 2}, rewards = {at, at};
    const std::array<bool, 2> done = {false, false};
    EXPECT_EQ(writer.add_batch({{"state", states}, {"reward", rewards}, {"done", done}}), 2 * i + 1);
  }
  const SequenceSample found = buffer.sample_sequences(2, 5, {.draw = {.rule = Rule::kWithoutReplacement}});
  EXPECT_NE(found.rows.values<float>("state")[1], found.rows.values<float>("state")[11]);
  EXPECT_EQ(found.rows.ids()[1], found.rows.ids()[0] + 2);
  EXPECT_EQ(test::message_of([&] { play(writer, 1, 1, 5); }),
            "[replay] writer: expected a multiple of 2 rows, one for each stream, found 1");
}

TEST(ReplayEpisodesApi, PlainCallsSayWhatToUse) {
  ReplayBuffer plain(columns(), {.capacity = 10}), episodes(columns(), {.capacity = 10, .terminal = "done"});
  EXPECT_EQ(test::message_of([&] { static_cast<void>(plain.writer()); }),
            "[replay] writer: expected a buffer with episodes, found one without; create it with terminal=\"name of a "
            "column\", truncated=\"name of a column\" or both");
  const std::vector<float> state = {1, 2};
  EXPECT_EQ(test::message_of([&] {
              episodes.add({{"state", state}, {"reward", 1.0f}, {"done", false}});
            }),
            "[replay] add: expected the rows of an actor, found one row; use writer().add() in a buffer with episodes");
  EXPECT_EQ(test::message_of([&] { episodes.sample_n_step(1, {.n = 1}); }),
            "[replay] sample_n_step: expected `next` or `last` columns, found neither");
}

TEST(ReplayEpisodesApi, GetReadsManyRowsAndMasksThoseThatAreGone) {
  ReplayBuffer buffer({{"x", "int32"}}, {.capacity = 4});
  const std::vector<int32_t> x = {0, 1, 2, 3, 4, 5};
  buffer.add_batch({{"x", x}});
  const std::vector<uint64_t> ids = {5, 0, 2, 99};
  const Sample rows = buffer.get(ids);
  const std::vector<int32_t> found(rows.values<int32_t>("x").begin(), rows.values<int32_t>("x").end());
  EXPECT_EQ(found, (std::vector<int32_t>{5, 0, 2, 0}));
  EXPECT_EQ(std::vector<uint8_t>(rows.mask().begin(), rows.mask().end()), (std::vector<uint8_t>{1, 0, 1, 0}));
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_FALSE(buffer.get(5).has_value());
}

TEST(ReplayEpisodesApi, APrioritisedBufferDrawsByPriority) {
  ReplayBuffer buffer({{"x", "int32"}}, {.capacity = 10, .prioritised = true});
  for (int32_t i = 0; i < 10; ++i) buffer.add({{"x", i}}, i == 3 ? 1.0f : 0.0f);
  const Sample drawn = buffer.sample(20);
  for (const int32_t x : drawn.values<int32_t>("x")) EXPECT_EQ(x, 3);
  const Sample uniform = buffer.sample(200, {.rule = Rule::kUniform});
  EXPECT_NE(std::count(uniform.ids().begin(), uniform.ids().end(), 3), 200);
  EXPECT_EQ(Rule::kPrioritized, Rule::kPrioritised);
}

TEST(ReplayEpisodesApi, StatsCountWhatHappened) {
  ReplayBuffer buffer({{"x", "int32"}},
                      {.capacity = 10, .prioritised = true, .alpha = 1, .samples_per_insert = 4, .slack = 1000});
  for (int32_t i = 0; i < 5; ++i) buffer.add({{"x", i}}, static_cast<float>(i));
  static_cast<void>(buffer.sample(7));
  const ReplayStats stats = buffer.stats();
  EXPECT_EQ(stats.size, 5u);
  EXPECT_EQ(stats.fill, 0.5);
  EXPECT_EQ(stats.added, 5u);
  EXPECT_EQ(stats.sampled, 7u);
  EXPECT_GT(stats.seconds, 0);
  EXPECT_NEAR(stats.added_per_second, 5 / stats.seconds, 1e-6 / stats.seconds);
  EXPECT_EQ(stats.oldest_age, 4u);
  EXPECT_EQ(stats.mean_age, 2);
  EXPECT_EQ(stats.min_priority, 0);
  EXPECT_NEAR(stats.mean_priority.value(), 2, 1e-6);
  EXPECT_NEAR(stats.max_priority.value(), 4, 1e-6);
  EXPECT_EQ(stats.balance, 4 * 4 - 7);  // the first row was free
  EXPECT_EQ(stats.handles, 1u);
  EXPECT_FALSE(stats.episodes.has_value());
  EXPECT_EQ(buffer.stats().added_per_second, 0);
}

TEST(ReplayEpisodesApi, ListsAndDescribesBuffers) {
  const std::string name = "api_list_test-" + std::to_string(getpid());
  const ReplayStorage storage{.shared = name};
  {
    ReplayBuffer buffer(columns(), {.capacity = 50, .storage = storage, .terminal = "done"});
    ReplayWriter writer = buffer.writer();
    play(writer, 1, 20, 5);
    const ReplayInfo info = ReplayBuffer::info(storage);
    EXPECT_EQ(info.columns, buffer.columns());
    EXPECT_EQ(info.rows, 20u);
    EXPECT_EQ(info.capacity, 50u);
    EXPECT_EQ(info.terminal, "done");
    EXPECT_EQ(info.handles, 1u);
    EXPECT_LT(info.age_seconds.value(), 60);
  }
  size_t found = 0;
  for (const ReplayInfo& info : ReplayBuffer::list()) found += info.storage.shared == name && info.handles == 0 ? 1 : 0;
  EXPECT_EQ(found, 1u);
  EXPECT_TRUE(ReplayBuffer::remove(storage));
  EXPECT_THROW(static_cast<void>(ReplayBuffer::info(storage)), Error);
}

TEST(ReplayEpisodesApi, OpenOrCreateComparesWhatExists) {
  const test::TemporaryFolder folder;
  const ReplayOptions options{.capacity = 10, .storage = {.file = folder / "rows"}};
  ReplayBuffer first = ReplayBuffer::open_or_create({{"x", "int32"}}, options);
  ReplayBuffer second = ReplayBuffer::open_or_create({{"x", "int32"}}, options);
  first.add({{"x", 1}});
  EXPECT_EQ(second.size(), 1u);
  EXPECT_EQ(first.stats().handles, 2u);
  ReplayOptions other = options;
  other.capacity = 20;
  const std::string place = "[replay] file '" + (folder / "rows").string() + "'";
  EXPECT_EQ(test::message_of([&] {
              ReplayBuffer::open_or_create({{"x", "int32"}}, other);
            }),
            place +
                ": exists with other options: capacity: expected 20, found 10; ask for the same, attach to it, or "
                "remove it");
  EXPECT_EQ(test::message_of([&] {
              ReplayBuffer::open_or_create({{"x", "int64"}}, options);
            }),
            place + ": column 0: expected 'x' int64 (), found 'x' int32 ()");
}

}  // namespace
}  // namespace quern
