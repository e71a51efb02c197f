#include "run/run_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "run/held_locks.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using test::message_of;

class RunLockTest : public ::testing::Test {
 protected:
  std::string refusal() {
    return message_of([&] { const RunLock second(folder_.path(), quiet_); });
  }

  test::TemporaryFolder folder_;
  Observer quiet_;
};

TEST_F(RunLockTest, ErrorNamesTheHolder) {
  {
    const RunLock first(folder_.path(), quiet_);
    const std::string pid = std::to_string(getpid());
    EXPECT_NE(refusal().find(": this process trains in this folder already"), std::string::npos) << refusal();
    const auto refused = [&] {
      const std::string message = refusal();
      const bool named =
          message.find(": another process trains in this folder (pid " + pid + " on ") != std::string::npos &&
          message.find(" since 2") != std::string::npos;
      if (!named) std::fprintf(stderr, "%s\n", message.c_str());
      return named ? 0 : 1;
    };
    EXPECT_EQ(test::run_in_child(refused), 0);
  }
  EXPECT_EQ(test::names_in(folder_.path()), std::set<std::string>{}) << "removed at an orderly end";
  const RunLock again(folder_.path(), quiet_);
}

TEST_F(RunLockTest, StatusIsKnownWithoutTakingTheLock) {
  const auto status = [&] { return HeldLocks().of(folder_.path()); };
  EXPECT_EQ(status(), LockStatus::kNone);
  {
    const RunLock lock(folder_.path(), quiet_);
    EXPECT_EQ(status(), LockStatus::kHeld);
    EXPECT_EQ(lock_holder(folder_ / kLockFile)->pid, getpid());
    EXPECT_TRUE(lock_holder(folder_ / kLockFile)->here);
    EXPECT_EQ(test::run_in_child([&] { return status() == LockStatus::kHeld ? 0 : 1; }), 0);
  }
  EXPECT_EQ(status(), LockStatus::kNone);
  test::run_in_child([&] {
    const RunLock lock(folder_.path(), quiet_);
    return kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(status(), LockStatus::kLeft);
  const RunLock taken(folder_.path(), quiet_);
  EXPECT_EQ(status(), LockStatus::kHeld);
}

TEST_F(RunLockTest, StatusOfFilesThatAreNoLocksOfThisMachine) {
  const auto status_with = [&](const std::string& text) {
    std::ofstream(folder_ / kLockFile, std::ios::trunc) << text;
    return HeldLocks().of(folder_.path());
  };
  EXPECT_EQ(status_with("quern run lock: pid 1 on elsewhere since 2020\n"), LockStatus::kElsewhere);
  EXPECT_EQ(status_with("quern run lock: pid x\n"), LockStatus::kLeft);
  EXPECT_EQ(status_with("quern run lock: pid 99999999999999999999 on x\n"), LockStatus::kLeft);
  EXPECT_EQ(status_with(""), LockStatus::kLeft);
  EXPECT_EQ(status_with("a note"), LockStatus::kNone);
  fs::remove(folder_ / kLockFile);
  fs::create_directory(folder_ / kLockFile);
  EXPECT_EQ(HeldLocks().of(folder_.path()), LockStatus::kNone);
}

TEST_F(RunLockTest, IsReleasedWhenTheProcessEnds) {
  const int code = test::run_in_child([&] {
    const RunLock lock(folder_.path(), quiet_);
    return kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  EXPECT_TRUE(is_run_lock(folder_ / kLockFile));
  const RunLock next(folder_.path(), quiet_);
}

// A process that Python's multiprocessing forked while a run was training kept its folder locked.
TEST_F(RunLockTest, IsNotInheritedByAForkedChild) {
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  char byte = 0;
  pid_t child = 0;
  {
    const RunLock lock(folder_.path(), quiet_);
    child = test::start_child([&] {
      close(to_child[1]);
      if (write(from_child[1], "x", 1) != 1) return 1;
      return static_cast<int>(read(to_child[0], &byte, 1));  // until the parent is done
    });
    ASSERT_EQ(read(from_child[0], &byte, 1), 1);
    // As if this process was killed: the lock is given back without removing the file.
    fs::rename(folder_ / kLockFile, folder_ / "moved");
  }
  fs::rename(folder_ / "moved", folder_ / kLockFile);
  EXPECT_NO_THROW(RunLock(folder_.path(), quiet_));
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) close(end);
  EXPECT_EQ(test::wait_for(child), 0);
}

TEST_F(RunLockTest, IsHeldByOneOfManyProcesses) {
  std::atomic<int> inside{0}, entered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        try {
          const RunLock lock(folder_.path(), quiet_);
          EXPECT_EQ(inside.fetch_add(1), 0);
          ++entered;
          inside.fetch_sub(1);
        } catch (const Error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(entered.load(), 0);
  EXPECT_EQ(test::names_in(folder_.path()), std::set<std::string>{});
}

TEST_F(RunLockTest, DoesNotTouchAnotherFileOfThatName) {
  write_file(folder_ / kLockFile, "my notes");
  EXPECT_FALSE(is_run_lock(folder_ / kLockFile));
  EXPECT_NE(refusal().find("run.lock: expected the lock of a run, found another file"), std::string::npos) << refusal();
  EXPECT_EQ(read_file(folder_ / kLockFile, 100), "my notes");
  fs::remove(folder_ / kLockFile);
  write_file(folder_ / "elsewhere", "");
  fs::create_symlink(folder_ / "elsewhere", folder_ / kLockFile);
  EXPECT_NE(refusal().find("run.lock: cannot open"), std::string::npos) << refusal();
  EXPECT_EQ(read_file(folder_ / "elsewhere", 100), "");
}

TEST_F(RunLockTest, ErrorHasNoEscapeCodes) {
  std::ofstream(folder_ / kLockFile) << "quern run lock: \x1b[31mpid 1\n second line";
  const int descriptor = open((folder_ / kLockFile).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(descriptor, LOCK_EX), 0);
  EXPECT_NE(refusal().find("(\\x1b[31mpid 1)"), std::string::npos) << refusal();
  close(descriptor);
}

}  // namespace
}  // namespace quern::train
