// Replay buffers through the public header.
#include <gtest/gtest.h>
#include <quern/replay.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "support/message.h"
#include "support/temporary_folder.h"

namespace {

using quern::ReplayBuffer;
using quern::test::message_of;
using quern::test::TemporaryFolder;

const std::vector<quern::Column> kColumns = {{"state", "float32", {2}}, {"action", "int32"}};

void add_rows(ReplayBuffer& buffer, int32_t rows) {
  for (int32_t i = 0; i < rows; ++i) {
    const auto value = static_cast<float>(i);
    buffer.add({{"state", std::array{value, -value}}, {"action", i}});
  }
}

TEST(PublicReplay, RowsRoundTrip) {
  ReplayBuffer buffer(kColumns, {.capacity = 8, .seed = 1});
  add_rows(buffer, 10);
  EXPECT_EQ(buffer.size(), 8u);
  EXPECT_EQ(buffer.total_added(), 10u);
  EXPECT_EQ(buffer.columns(), kColumns);
  const quern::Sample batch = buffer.sample(5);
  ASSERT_EQ(batch.rows(), 5u);
  const auto states = batch.values<float>("state");
  const auto actions = batch.values<int32_t>("action");
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(states[2 * i], static_cast<float>(actions[i]));
    EXPECT_EQ(states[2 * i + 1], -static_cast<float>(actions[i]));
    EXPECT_EQ(batch.ages()[i], 9 - batch.ids()[i]);
    EXPECT_EQ(batch.weights()[i], 1.0f);
  }
  EXPECT_FALSE(buffer.get(1));
  EXPECT_EQ(buffer.get(9)->values<int32_t>("action")[0], 9);
}

TEST(PublicReplay, EqualSeedsDrawEqualRowsAndMemoryIsReused) {
  ReplayBuffer one(kColumns, {.capacity = 100, .seed = 7}), two(kColumns, {.capacity = 100, .seed = 7});
  add_rows(one, 50);
  add_rows(two, 50);
  quern::Sample a, b;
  for (int call = 0; call < 3; ++call) {
    one.sample(10, a);
    two.sample(10, b);
    EXPECT_TRUE(std::equal(a.ids().begin(), a.ids().end(), b.ids().begin(), b.ids().end()));
  }
  const float* const memory = a.values<float>("state").data();
  one.sample(10, a);
  EXPECT_EQ(a.values<float>("state").data(), memory);
}

TEST(PublicReplay, BatchesAndPriorities) {
  ReplayBuffer buffer({{"x", "float64"}}, {.capacity = 100, .prioritised = true, .alpha = 1, .seed = 2});
  const std::vector<double> values = {1, 2, 3};
  const std::vector<float> priorities = {1, 0, 0};
  EXPECT_EQ(buffer.add_batch({{"x", values}}, priorities), 2u);
  EXPECT_EQ(buffer.add_batch({{"x", std::vector<double>{}}}), std::nullopt);
  const quern::SampleOptions prioritised{.rule = quern::Rule::kPrioritised};
  quern::Sample batch = buffer.sample(20, prioritised);
  for (const uint64_t id : batch.ids()) EXPECT_EQ(id, 0u);
  const std::vector<uint64_t> ids = {0, 2, 77};
  EXPECT_EQ(buffer.update_priorities(ids, std::vector<float>{0, 5, 1}), 2u);
  buffer.sample(20, batch, prioritised);
  for (const uint64_t id : batch.ids()) EXPECT_EQ(id, 2u);
}

TEST(PublicReplay, BadInputNamesTheColumn) {
  ReplayBuffer buffer(kColumns, {.capacity = 8});
  const std::array<float, 2> state = {1, 2};
  const auto found = [&](const std::string& text, auto function) {
    const std::string message = message_of(function);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  found("expected 2 columns, found 1", [&] { buffer.add({{"state", state}}); });
  found("'action': expected int32 ", [&] { buffer.add({{"state", state}, {"action", 1.0f}}); });
  found("expected it once", [&] { buffer.add({{"state", state}, {"state", state}}); });
  found("a multiple of 2 values, found 3", [&] { buffer.add({{"state", std::array{1.f, 2.f, 3.f}}, {"action", 1}}); });
  found("expected 1 rows", [&] { buffer.add_batch({{"state", state}, {"action", std::array{1, 2}}}); });
  found("one row, found 2", [&] {
    buffer.add({{"state", std::array{1.f, 2.f, 3.f, 4.f}}, {"action", std::array{1, 2}}});
  });
  EXPECT_EQ(buffer.total_added(), 0u);
  EXPECT_THROW(buffer.sample(1), quern::Error);
  add_rows(buffer, 1);
  const quern::Sample row = buffer.sample(1);
  found("expected values of float32", [&] { row.values<double>("state"); });
  found("name of a column", [&] { row.values<float>("nothing"); });
  found("sample: n", [&] { buffer.sample(SIZE_MAX); });
  found("found nan", [&] { buffer.sample(1, {.timeout = std::nan("")}); });
  EXPECT_THROW(ReplayBuffer({{"x", "complex64"}}, {.capacity = 1}), quern::Error);
  EXPECT_THROW(ReplayBuffer::attach({}), quern::Error);
  EXPECT_THROW(ReplayBuffer::remove({.shared = "a", .file = "b"}), quern::Error);
}

TEST(PublicReplay, RateLimitMakesBothSidesWait) {
  ReplayBuffer buffer({{"x", "int32"}}, {.capacity = 100, .samples_per_insert = 1, .min_size = 2});
  buffer.add({{"x", 1}});
  EXPECT_THROW(buffer.sample(1, {.timeout = 0.01}), quern::TimeoutError);
  buffer.add({{"x", 2}});
  std::thread actor([&] {
    for (int i = 0; i < 50; ++i) buffer.add({{"x", i}}, {}, 30);
  });
  for (int i = 0; i < 50; ++i) buffer.sample(1, {.timeout = 30});
  actor.join();
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) buffer.add({{"x", i}}, {}, 0);
      },
      quern::TimeoutError);
}

TEST(PublicReplay, ProcessesShareRowsAndSampleIndependently) {
  const quern::ReplayStorage storage{.shared = "api-test-" + std::to_string(getpid())};
  ReplayBuffer buffer({{"x", "uint64"}}, {.capacity = 100, .storage = storage});
  const pid_t child = fork();
  if (child == 0) {
    ReplayBuffer mine = ReplayBuffer::attach(storage, 5);
    mine.add({{"x", buffer.seed()}});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(buffer.size(), 1u);
  EXPECT_NE(buffer.get(0)->values<uint64_t>("x")[0], buffer.seed()) << "a child must not draw what its parent draws";
  EXPECT_TRUE(ReplayBuffer::remove(storage));
  EXPECT_FALSE(ReplayBuffer::remove(storage));
}

TEST(PublicReplay, SnapshotsAndNpz) {
  const TemporaryFolder folder;
  ReplayBuffer buffer(kColumns, {.capacity = 16});
  add_rows(buffer, 10);
  EXPECT_EQ(buffer.save(folder / "rows.qrs").rows, 10u);
  ReplayBuffer again = ReplayBuffer::from_snapshot(folder / "rows.qrs");
  EXPECT_EQ(again.size(), 10u);
  EXPECT_EQ(again.capacity(), 16u);
  EXPECT_EQ(again.load(folder / "rows.qrs").rows, 10u);
  EXPECT_EQ(again.total_added(), 20u);
  EXPECT_EQ(buffer.export_npz(folder / "rows.npz").rows, 10u);
  EXPECT_EQ(again.import_npz(folder / "rows.npz").rows, 10u);
  EXPECT_THROW(ReplayBuffer::from_snapshot(folder / "rows.npz"), quern::Error);
}

TEST(PublicReplay, EncodedColumnsAndHalfFloats) {
  ReplayBuffer buffer(
      {{"plane", "uint8", {16}, "bits"}, {"policy", "float32", {100}, "sparse", 2}, {"half", "float16"}},
      {.capacity = 4});
  std::array<uint8_t, 16> plane{};
  plane[3] = 1;
  std::array<float, 100> policy{};
  policy[42] = 0.5f;
  const uint16_t one = 0x3c00;  // 1.0 in float16
  buffer.add({{"plane", plane}, {"policy", policy}, {"half", one}});
  const quern::Sample row = buffer.sample(1);
  EXPECT_EQ(row.values<uint8_t>("plane")[3], 1);
  EXPECT_EQ(row.values<float>("policy")[42], 0.5f);
  EXPECT_EQ(row.values<uint16_t>("half")[0], one);
  policy.fill(1);
  EXPECT_THROW(buffer.add({{"plane", plane}, {"policy", policy}, {"half", one}}), quern::Error);
}

}  // namespace
