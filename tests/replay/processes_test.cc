// Several processes on one buffer, and what is left when they are killed or stopped.
#include "tests/replay/processes.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

TEST_F(ProcessesTest, RowsAreSharedBetweenProcesses) {
  const pid_t child = start_child([&] {
    ReplayBuffer buffer = ReplayBuffer::attach(storage_, 10);  // before it is there
    add(buffer, 5);
    return 0;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const ReplayBuffer buffer = make(8);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(buffer.size(), 5u);
  ASSERT_TRUE(buffer.read(4, out_.outputs()));
  EXPECT_TRUE(out_.good());
}

TEST_F(ProcessesTest, SlotOfADeadWriterIsTakenOver) {
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    ReplayBuffer mine = ReplayBuffer::attach(storage_);
    get_stuck(mine);
    return 0;
  });
  shared_->wait_for_step(1);
  add(buffer, 8);
  EXPECT_EQ(missing(buffer), 1u);  // the slot belongs to it while it lives, and others do not wait
  EXPECT_EQ(buffer.total_added(), 8u);
  kill_and_wait(child);
  add(buffer, 4);
  EXPECT_EQ(missing(buffer), 0u);
  EXPECT_EQ(buffer.total_added(), 12u);
}

TEST_F(ProcessesTest, StoppedWriterDoesNotBlockOthers) {
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    ReplayBuffer mine = ReplayBuffer::attach(storage_);
    const uint64_t id = mine.ring().write(mine.ring().reserve(1), [&](uint64_t) { raise(SIGSTOP); });
    return id == 0 ? 0 : 1;
  });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  add(buffer, 9);
  EXPECT_EQ(buffer.total_added(), 9u);
  EXPECT_EQ(missing(buffer), 1u);
  kill(child, SIGCONT);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(buffer.ring().id_in(0), 0u);  // it finished in peace; its row is out of date
  add(buffer, 4);
  EXPECT_GT(buffer.ring().id_in(0), 4u);
}

// No process is left. The next one finds the rows, and no slot that stays busy.
TEST_F(ProcessesTest, FileSurvivesTheDeathOfAllProcesses) {
  const test::TemporaryFolder folder;
  storage_ = Storage::in_file(folder / "buffer");
  const pid_t child = start_child([&] {
    ReplayBuffer buffer = make(10);
    add(buffer, 13);
    get_stuck(buffer);
    return 0;
  });
  shared_->wait_for_step(1);
  kill_and_wait(child);
  ReplayBuffer buffer = ReplayBuffer::attach(storage_);
  EXPECT_EQ(buffer.total_added(), 13u);
  EXPECT_EQ(missing(buffer), 1u);
  for (uint64_t id = 4; id < 13; ++id) {
    ASSERT_TRUE(buffer.read(id, out_.outputs())) << id;
    EXPECT_TRUE(out_.good());
  }
  EXPECT_FALSE(buffer.read(13, out_.outputs()));
  add(buffer, 10);
  EXPECT_EQ(missing(buffer), 0u);
}

// Killed a little later each time, from before it has begun until it is done.
TEST_F(ProcessesTest, KilledCreatorLeavesAllOrNothing) {
  const test::TemporaryFolder folder;
  storage_ = Storage::in_file(folder / "buffer");
  for (int i = 0; i < 30; ++i) {
    const pid_t child = start_child([&] {
      const ReplayBuffer buffer = make(100000);  // 35 MB
      while (true) pause();
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
    kill_and_wait(child);
    const std::set<std::string> names = test::names_in(folder.path());
    if (names.empty()) continue;
    EXPECT_EQ(names, std::set<std::string>{"buffer"});
    ReplayBuffer buffer = ReplayBuffer::attach(storage_);
    add(buffer, 1);
    EXPECT_EQ(buffer.size(), 1u);
    EXPECT_TRUE(ReplayBuffer::remove(storage_));
  }
}

// File systems that know no files without a name (FAT, 9p and others) say so with EOPNOTSUPP. False where this process
// may not have its system calls changed.
bool forbid_unnamed_files() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// There the memory has a temporary name while it is made. One that a killed process left was there for ever.
TEST_F(ProcessesTest, LeftoverOfAKilledCreatorIsRemovedWithoutTmpfile) {
  const test::TemporaryFolder folder;
  storage_ = Storage::in_file(folder / "buffer");
  write_file(folder / ".tmp-quern-1234-0x7f", "not ours");
  const auto temporaries = [&] { return test::names_in(folder.path()).size() - 1; };
  size_t left = 0;
  for (int i = 0; i < 200 && left == 0; ++i) {
    const pid_t child = start_child([&] {
      if (!forbid_unnamed_files()) return test::kNotPermitted;
      while (true) {
        make(100000);
        ReplayBuffer::remove(storage_);
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kill(child, SIGKILL);
    if (wait_for(child) == test::kNotPermitted) GTEST_SKIP() << "filtering system calls takes more rights";
    ReplayBuffer::remove(storage_);
    left = temporaries();
  }
  EXPECT_GT(left, 0u) << "none was killed while it made one: the test shows nothing";
  EXPECT_EQ(test::run_in_child([&] {
              if (!forbid_unnamed_files()) return test::kNotPermitted;
              ReplayBuffer buffer = make(10);
              add(buffer, 1);
              return buffer.size() == 1 && ReplayBuffer::attach(storage_).size() == 1 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(test::names_in(folder.path()), (std::set<std::string>{"buffer", ".tmp-quern-1234-0x7f"}));
}

// A process that waits for a name finds a complete buffer.
TEST_F(ProcessesTest, AttachDuringCreation) {
  for (int i = 0; i < 10; ++i) {
    const pid_t child = start_child([&] {
      const ReplayBuffer buffer = make(100000);
      while (true) pause();
      return 0;
    });
    {
      ReplayBuffer buffer = ReplayBuffer::attach(storage_, 60);
      add(buffer, 1);
      EXPECT_EQ(buffer.size(), 1u);
    }
    kill_and_wait(child);
    EXPECT_TRUE(ReplayBuffer::remove(storage_));
  }
}

TEST_F(ProcessesTest, NumberOfWritingProcessesIsLimited) {
  const ReplayBuffer buffer = make(4);
  const int descriptor = open(storage_.path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  // All indices but the one that is in use.
  for (uint16_t index = 0; index < Writers::kMax; ++index) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_start = (off_t{1} << 62) + index;
    lock.l_len = 1;
    static_cast<void>(fcntl(descriptor, F_OFD_SETLK, &lock));
  }
  EXPECT_EQ(test::message_of([&] { ReplayBuffer::attach(storage_); }),
            storage_.text() + ": expected at most 4096 processes at once, found that many already");
  close(descriptor);
  EXPECT_EQ(ReplayBuffer::attach(storage_).capacity(), 4u);
}

}  // namespace
}  // namespace quern::replay
