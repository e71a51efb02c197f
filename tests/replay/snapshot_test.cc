#include "replay/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <thread>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/files.h"
#include "replay/row_block.h"
#include "rows.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::counting;
using test::numbers_in;

ReplayBuffer small_buffer(uint64_t capacity, bool prioritised = false, double alpha = 0.6) {
  return ReplayBuffer::create(test::small_schema(), test::options_for(capacity, prioritised, alpha));
}

TEST(Snapshot, EveryKindOfColumnRoundTripsBitForBit) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "s";
  const Schema schema = test::schema_of_all();
  const uint64_t block = block_rows(schema);
  ASSERT_GT(block, 10u);
  for (const uint64_t rows : {uint64_t{0}, uint64_t{1}, block - 1, block, block + 1, 3 * block + 7}) {
    for (const size_t threads : {1, 3}) {
      auto buffer = ReplayBuffer::create(schema, test::options_for(std::max<uint64_t>(rows, 1)));
      test::add_rows(buffer, 0, rows);
      const SnapshotResult saved = save_snapshot(buffer, path, {.threads = threads});
      EXPECT_EQ(saved.rows, rows);
      EXPECT_EQ(saved.skipped, 0u);
      EXPECT_EQ(saved.bytes, std::filesystem::file_size(path));
      auto back = ReplayBuffer::create(schema, test::options_for(rows + 5));
      const SnapshotResult loaded = load_snapshot(back, path, {.threads = threads});
      EXPECT_EQ(loaded.rows, rows);
      EXPECT_EQ(loaded.skipped, 0u);
      EXPECT_EQ(numbers_in(back), counting(0, rows)) << rows;
    }
  }
}

TEST(Snapshot, InfoDescribesTheContents) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(50, true, 0.7);
  test::add_rows(buffer, 0, 70);
  const SnapshotResult saved = save_snapshot(buffer, folder.path() / "s");
  const SnapshotInfo info = snapshot_info(folder.path() / "s");
  EXPECT_EQ(info.schema, buffer.schema());
  EXPECT_EQ(info.rows, 50u);
  EXPECT_EQ(info.capacity, 50u);
  EXPECT_TRUE(info.prioritised);
  EXPECT_EQ(info.alpha, 0.7);
  EXPECT_EQ(info.skipped, 0u);
  EXPECT_EQ(info.bytes, saved.bytes);
}

TEST(Snapshot, LoadAppendsAndASmallerBufferGetsTheNewestRows) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "s";
  const uint64_t block = block_rows(test::small_schema());
  const uint64_t rows = 2 * block + 100;
  auto buffer = small_buffer(rows);
  test::add_rows(buffer, 50, 50 + rows);
  save_snapshot(buffer, path);
  for (const uint64_t capacity :
       {uint64_t{1}, uint64_t{99}, uint64_t{100}, uint64_t{101}, block + 100, rows - 1, rows}) {
    auto smaller = small_buffer(capacity);
    const SnapshotResult loaded = load_snapshot(smaller, path);
    EXPECT_EQ(loaded.rows, capacity);
    EXPECT_EQ(loaded.skipped, rows - capacity);
    EXPECT_EQ(numbers_in(smaller), counting(50 + rows - capacity, 50 + rows)) << capacity;
  }
  auto larger = small_buffer(rows + 30);
  test::add_rows(larger, 0, 50);
  load_snapshot(larger, path);
  EXPECT_EQ(numbers_in(larger), counting(20, 50 + rows));
}

std::vector<uint64_t> weights_in(const ReplayBuffer& buffer) {
  std::vector<uint64_t> weights;
  const Window window = buffer.ring().window();
  for (uint64_t id = window.begin; id < window.end; ++id) weights.push_back(buffer.tree()->get(id % buffer.capacity()));
  return weights;
}

class SnapshotPriorities : public testing::Test {
 protected:
  SnapshotPriorities() {
    for (uint64_t i = 0; i < 300; ++i) {
      const auto priority = static_cast<float>(i % 7 == 0 ? 0 : static_cast<double>(test::mixed(i) % 1000) / 97);
      test::add_row(buffer_, i, &priority);
    }
    save_snapshot(buffer_, path_);
  }
  ReplayBuffer buffer_ = small_buffer(200, true, 0.6);
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "s";
};

TEST_F(SnapshotPriorities, AreSavedExactly) {
  auto back = small_buffer(250, true, 0.6);
  load_snapshot(back, path_);
  EXPECT_EQ(weights_in(back), weights_in(buffer_));
  EXPECT_EQ(back.tree()->total(), buffer_.tree()->total());
  auto smaller = small_buffer(30, true, 0.6);
  load_snapshot(smaller, path_);
  const auto all = weights_in(buffer_);
  EXPECT_EQ(weights_in(smaller), std::vector<uint64_t>(all.end() - 30, all.end()));
}

TEST_F(SnapshotPriorities, AreRecomputedForAnotherAlpha) {
  auto back = small_buffer(200, true, 1.0);
  load_snapshot(back, path_);
  const auto found = weights_in(back);
  for (uint64_t i = 100; i < 300; ++i) {
    const double priority = i % 7 == 0 ? 0 : static_cast<float>(static_cast<double>(test::mixed(i) % 1000) / 97);
    EXPECT_NEAR(static_cast<double>(found[i - 100]), priority * (1 << 24), 1 + priority * 4) << i;
  }
}

TEST_F(SnapshotPriorities, AreDroppedOrTheMaximumIfOneSideHasNone) {
  auto plain = small_buffer(200);
  load_snapshot(plain, path_);
  EXPECT_EQ(numbers_in(plain), counting(100, 300));
  save_snapshot(plain, path_);
  auto prioritised = small_buffer(300, true);
  const float priority = 5;
  test::add_row(prioritised, 7, &priority);
  load_snapshot(prioritised, path_);
  EXPECT_EQ(numbers_in(prioritised).size(), 201u);
  for (const uint64_t weight : weights_in(prioritised)) EXPECT_EQ(weight, weight_of(5, 0.6, 300));
}

TEST_F(SnapshotPriorities, TooLargeForTheBufferIsRefusedBeforeAnythingIsWritten) {
  auto one = small_buffer(1, true, 1.0);
  const float priority = 3e11f;
  test::add_row(one, 7, &priority);
  save_snapshot(one, path_);
  auto large = small_buffer(10'000, true, 1.0);
  const std::string message = test::message_of([&] { load_snapshot(large, path_); });
  EXPECT_NE(message.find("expected weights of at most"), std::string::npos) << message;
  EXPECT_EQ(large.total_added(), 0u);
}

TEST(Snapshot, AnotherSchemaIsRefusedByName) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(10);
  test::add_rows(buffer, 0, 10);
  save_snapshot(buffer, folder.path() / "s");
  std::vector<Column> columns = test::small_schema().columns();
  columns[1].shape = {71};
  auto other = ReplayBuffer::create(Schema(columns), test::options_for(10));
  const std::string message = test::message_of([&] { load_snapshot(other, folder.path() / "s"); });
  EXPECT_NE(message.find("planes"), std::string::npos) << message;
  EXPECT_NE(message.find("70"), std::string::npos) << message;
  EXPECT_NE(message.find("71"), std::string::npos) << message;
  EXPECT_EQ(other.total_added(), 0u);
}

std::string small_file(const std::filesystem::path& path, uint64_t rows, bool prioritised) {
  auto buffer = small_buffer(rows, prioritised);
  test::add_rows(buffer, 0, rows);
  save_snapshot(buffer, path);
  return read_file(path, 1 << 24);
}

// `damaged` must be refused, with nothing written.
void expect_refused(const std::filesystem::path& path, std::string_view damaged, ReplayBuffer& buffer,
                    const std::string& what) {
  write_file(path, damaged);
  const std::string message = test::message_of([&] { load_snapshot(buffer, path, {.threads = 1}); });
  ASSERT_NE(message, "no error") << what;
  ASSERT_EQ(buffer.ring().window().end, 0u) << what;
}

TEST(Snapshot, EveryFlippedByteIsDetected) {
  const test::TemporaryFolder folder;
  const std::string good = small_file(folder.path() / "s", 3, true);
  auto buffer = small_buffer(10, true);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {1, 0x80, 0xFF}) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      expect_refused(folder.path() / "d", damaged, buffer, "byte " + std::to_string(at));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Snapshot, EveryTruncationIsDetected) {
  const test::TemporaryFolder folder;
  const std::string good = small_file(folder.path() / "s", 3, false);
  auto buffer = small_buffer(10);
  for (size_t size = 0; size < good.size(); ++size) {
    expect_refused(folder.path() / "d", std::string_view(good).substr(0, size), buffer, std::to_string(size));
    if (testing::Test::HasFatalFailure()) return;
  }
  expect_refused(folder.path() / "d", good + '\0', buffer, "one byte more");
}

TEST(Snapshot, AnyDamageIsDetected) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> good = {small_file(folder.path() / "s", 3, true),
                                         small_file(folder.path() / "s", 9, false),
                                         small_file(folder.path() / "s", 1, true)};
  test::Mutator mutator(good, {"QRNSNAP\n", std::string(8, '\0'), std::string(4, '\xFF')}, 5);
  auto buffer = small_buffer(10, true);
  size_t refused = 0;
  for (int i = 0; i < 12'000; ++i) {
    const std::string damaged = mutator.next();
    if (std::find(good.begin(), good.end(), damaged) != good.end()) continue;
    expect_refused(folder.path() / "d", damaged, buffer, "mutation " + std::to_string(i));
    if (testing::Test::HasFatalFailure()) return;
    ++refused;
  }
  EXPECT_GT(refused, 11'000u);
}

template <typename T>
void put(std::string& file, size_t at, T value) {
  if (at + sizeof value <= file.size()) std::memcpy(file.data() + at, &value, sizeof value);
}

template <typename T>
T get(const std::string& file, size_t at) {
  T value{};
  if (at + sizeof value <= file.size()) std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

// Makes the checksums of a file with one block right again.
void seal(std::string& file) {
  if (file.size() < 200) return;
  const size_t header = 40 + size_t{get<uint32_t>(file, 36)};
  if (header + 4 > file.size()) return;
  const uint32_t header_crc = crc32c(std::string_view(file).substr(0, header));
  put(file, header, header_crc);
  const size_t index = file.size() - 32 - 24;
  put(file, index + 20, crc32c(std::string_view(file).substr(header + 4, index - std::min(index, header + 4))));
  put(file, file.size() - 8, header_crc);
  put(file, file.size() - 4, crc32c(std::string_view(file).substr(index, 24 + 28)));
}

// No checksum stands between these bytes and what reads them. Some load, others are refused; the address sanitizer sees
// what should not be touched.
TEST(Snapshot, ForgedFileIsSafe) {
  const test::TemporaryFolder folder;
  std::string sealed = small_file(folder.path() / "s", 9, true);
  const std::string good = sealed;
  seal(sealed);
  ASSERT_EQ(sealed, good);
  test::Mutator mutator({good, small_file(folder.path() / "s", 30, false)},
                        {std::string(8, '\0'), std::string(4, '\xFF')}, 6);
  size_t loaded = 0, refused = 0;
  auto buffer = small_buffer(20, true);
  for (int i = 0; i < 10'000; ++i) {
    std::string damaged = mutator.next();
    seal(damaged);
    write_file(folder.path() / "d", damaged);
    const bool good_one =
        test::message_of([&] { load_snapshot(buffer, folder.path() / "d", {.threads = 1}); }) == "no error";
    (good_one ? loaded : refused) += 1;
    if (good_one) {
      buffer = small_buffer(20, true);
    } else {
      ASSERT_EQ(buffer.ring().window().end, 0u);  // there was one block only
    }
  }
  EXPECT_GT(loaded, 500u);
  EXPECT_GT(refused, 5000u);
}

TEST(Snapshot, OtherFileIsAnError) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(10);
  const auto load = [&](const char* name) {
    return test::message_of([&] { load_snapshot(buffer, folder.path() / name); });
  };
  write_file(folder.path() / "text", std::string(200, 'x'));
  EXPECT_NE(load("text").find("expected a snapshot of a replay buffer, found another file"), std::string::npos);
  EXPECT_NE(load("missing").find("cannot open"), std::string::npos);
  std::string other = small_file(folder.path() / "s", 3, false);
  other[8] = 9;
  write_file(folder.path() / "version", other);
  EXPECT_NE(load("version").find("expected version 1 or 2, found 9"), std::string::npos) << load("version");
}

// Writers overwrite the ring many times while it is saved: what is in the file is whole, in order, and each row once.
TEST(Snapshot, AddsContinueDuringASave) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(3000);
  test::add_rows(buffer, 0, 3000);
  std::atomic<uint64_t> number{3000};
  std::atomic<bool> stop{false};
  const auto write = [&] {
    while (!stop.load(std::memory_order_relaxed)) test::add_row(buffer, number.fetch_add(1, std::memory_order_relaxed));
  };
  std::thread first(write), second(write);
  uint64_t rows = 0;
  for (int round = 0; round < 20; ++round) {
    const SnapshotResult saved = save_snapshot_in_background(buffer, folder.path() / "s").get();
    EXPECT_EQ(saved.rows + saved.skipped, 3000u);
    rows += saved.rows;
    auto back = small_buffer(3000);
    EXPECT_EQ(load_snapshot(back, folder.path() / "s").rows, saved.rows);
    std::vector<uint64_t> numbers = numbers_in(back);
    ASSERT_EQ(numbers.size(), saved.rows);
    ASSERT_EQ(std::count(numbers.begin(), numbers.end(), test::kNotARow), 0);
    std::sort(numbers.begin(), numbers.end());  // two writers: a number drawn earlier may be added a little later
    ASSERT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  }
  stop.store(true, std::memory_order_relaxed);
  first.join();
  second.join();
  EXPECT_GT(rows, 0u);
  EXPECT_EQ(snapshot_info(folder.path() / "s").rows + snapshot_info(folder.path() / "s").skipped, 3000u);
}

// One writer, so ids and numbers rise together.
TEST(Snapshot, RowsAreInOrderOfTheirIds) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(2000);
  test::add_rows(buffer, 0, 2000);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 2000; !stop.load(std::memory_order_relaxed); ++i) test::add_row(buffer, i);
  });
  for (int round = 0; round < 10; ++round) {
    save_snapshot(buffer, folder.path() / "s", {.threads = 3});
    auto back = small_buffer(2000);
    load_snapshot(back, folder.path() / "s", {.threads = 3});
    const std::vector<uint64_t> numbers = numbers_in(back);
    ASSERT_EQ(std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()), numbers.end());
  }
  stop.store(true, std::memory_order_relaxed);
  writer.join();
}

// Snapshots load for all options that a buffer can have. Alphas above 10^6 were saved and then refused.
TEST_F(SnapshotPriorities, LoadWithAnyAlpha) {
  for (const double alpha : {0.0, 1e-300, 1e6, 1.0000001e6, 1e12, std::numeric_limits<double>::max()}) {
    auto saved = small_buffer(4, true, alpha), back = small_buffer(4, true, alpha);
    for (const float priority : {0.0f, 0.5f, 1.0f}) test::add_row(saved, 1, &priority);
    save_snapshot(saved, path_);
    EXPECT_EQ(snapshot_info(path_).alpha, alpha);
    EXPECT_EQ(load_snapshot(back, path_).rows, 3u) << alpha;
    EXPECT_EQ(weights_in(back), weights_in(saved)) << alpha;
  }
}

// A child of fork() has the object and not the thread. It once waited for that thread for ever.
TEST(Snapshot, ForkedChildDoesNotWaitForABackgroundSave) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(100'000);
  test::add_rows(buffer, 0, 20'000);
  for (int round = 0; round < 5; ++round) {
    std::optional<BackgroundSave> saving = save_snapshot_in_background(buffer, folder.path() / "s", {.threads = 1});
    const int code = test::run_in_child([&] {
      alarm(30);
      if (!saving->wait_for(0)) return 1;
      if (test::message_of([&] { saving->get(); }).find("child of fork()") == std::string::npos) return 2;
      saving.reset();
      return 0;
    });
    EXPECT_EQ(code, 0);
    EXPECT_EQ(saving->get().rows, 20'000u);
    EXPECT_EQ(saving->get().rows, 20'000u);  // as often as one likes
    EXPECT_TRUE(saving->wait_for(0));
  }
}

// Names that only look like our temporaries are not ours.
TEST(Snapshot, OtherFilesNextToItAreUntouched) {
  const test::TemporaryFolder folder;
  std::set<std::string> names = {"games"};
  for (const char* name : {".tmp-games-backup", ".tmp-games-1-2", ".tmp-games-2024-01-31", ".tmp-quern-games-1-2"}) {
    std::filesystem::create_directory(folder / name);
    write_file(folder.path() / name / "thesis", "text");
    write_file(folder / (std::string(name) + "-file"), "text");
    names.insert({name, std::string(name) + "-file"});
  }
  auto buffer = small_buffer(10);
  test::add_rows(buffer, 0, 10);
  for (int round = 0; round < 3; ++round) save_snapshot(buffer, folder.path() / "games");
  EXPECT_EQ(test::names_in(folder.path()), names);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / ".tmp-games-backup" / "thesis"));
}

TEST(Snapshot, ErrorOfABackgroundSaveIsInTheFuture) {
  auto buffer = small_buffer(10);
  const BackgroundSave saving = save_snapshot_in_background(buffer, "/nowhere/at/all/s");
  EXPECT_NE(test::message_of([&] { saving.get(); }).find("/nowhere/at/all/s"), std::string::npos);
}

}  // namespace
}  // namespace quern::replay
