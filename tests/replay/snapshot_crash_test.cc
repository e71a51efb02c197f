// A save that is killed at any moment, or meets a full disk, costs nothing that was saved before.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "core/error.h"
#include "replay/snapshot.h"
#include "rows.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern::replay {
namespace {

constexpr uint64_t kRows = 3000;

ReplayBuffer filled(uint64_t first) {
  auto buffer = ReplayBuffer::create(test::small_schema(), test::options_for(kRows));
  test::add_rows(buffer, first, first + kRows);
  return buffer;
}

// The first row of the whole snapshot that lies there.
uint64_t check(const std::filesystem::path& path) {
  auto buffer = ReplayBuffer::create(test::small_schema(), test::options_for(kRows));
  load_snapshot(buffer, path);
  const std::vector<uint64_t> numbers = test::numbers_in(buffer);
  EXPECT_EQ(numbers, test::counting(numbers[0], numbers[0] + kRows));
  return numbers[0];
}

TEST(SnapshotCrash, KilledSaveLeavesACompleteSnapshot) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "s";
  ReplayBuffer even = filled(0), odd = filled(100'000);
  save_snapshot(even, path);
  std::mt19937 random(5);
  size_t left = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = test::start_child([&] {
      for (;;) {
        save_snapshot(odd, path);
        save_snapshot(even, path);
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 30'000));
    kill(child, SIGKILL);
    ASSERT_EQ(test::wait_for(child), 128 + SIGKILL);
    const uint64_t first = check(path);
    ASSERT_TRUE(first == 0 || first == 100'000);
    left += test::names_in(folder.path()).size() - 1;
  }
  EXPECT_GT(left, 0u);  // some were killed in the middle
  save_snapshot(even, path);
  EXPECT_EQ(test::names_in(folder.path()), std::set<std::string>{"s"});
}

// Each removes what killed ones have left, and must not take for that what another is about to rename.
TEST(SnapshotCrash, ConcurrentSavesToOneNameDoNotInterfere) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "s";
  const ReplayBuffer buffer = filled(0);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(test::start_child([&] {
      for (int round = 0; round < 60; ++round) save_snapshot(buffer, path, {.threads = 1});
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_EQ(check(path), 0u);
  EXPECT_EQ(test::names_in(folder.path()), std::set<std::string>{"s"});
}

// 0 when the save fails with the reason, the old one is whole, and there is nothing else.
int check_failed_save(const std::filesystem::path& folder, const ReplayBuffer& buffer, const char* reason) {
  const std::string message = test::message_of([&] { save_snapshot(buffer, folder / "s"); });
  if (message.find(reason) == std::string::npos || message.find("/s: ") == std::string::npos) {
    std::fprintf(stderr, "%s\n", message.c_str());
    return 1;
  }
  if (test::names_in(folder) != std::set<std::string>{"s"}) return 2;
  return check(folder / "s") == 0 ? 0 : 3;
}

TEST(SnapshotFullDisk, FileSizeLimitLeavesTheOldSnapshot) {
  const ReplayBuffer buffer = filled(0), other = filled(100'000);
  for (const size_t limit : {10, 1000, 5000, 50'000}) {
    const test::TemporaryFolder folder;
    ASSERT_GT(save_snapshot(buffer, folder.path() / "s").bytes, limit);
    const int code = test::run_in_child([&] {
      test::limit_file_size(limit);
      return check_failed_save(folder.path(), other, "File too large");
    });
    EXPECT_EQ(code, 0) << limit;
  }
}

TEST(SnapshotFullDisk, FullDiskLeavesTheOldSnapshot) {
  const ReplayBuffer buffer = filled(0), other = filled(100'000);
  const test::TemporaryFolder folder;
  const size_t bytes = save_snapshot(buffer, folder.path() / "s").bytes;
  const int code = test::run_in_child([&] {
    if (!test::mount_tiny_disk(folder.path(), bytes + bytes / 2)) return test::kNotPermitted;
    save_snapshot(buffer, folder.path() / "s");
    return check_failed_save(folder.path(), other, "No space left on device");
  });
  if (code == test::kNotPermitted) GTEST_SKIP() << "mounting a small disk takes more rights";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace quern::replay
