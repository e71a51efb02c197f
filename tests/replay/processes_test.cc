// Several processes on one buffer, and what is left when they are killed or stopped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "replay/buffer.h"
#include "tests/replay/checked_rows.h"
#include "tests/support/child_process.h"
#include "tests/support/message.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::CheckedRows;
using test::start_child;
using test::wait_for;

// Atomics that children share with the test.
struct Shared {
  std::atomic<uint64_t> step{0}, added{0}, good{0}, bad{0}, missed{0};
  std::atomic<bool> stop{false};

  void wait_for_step(uint64_t number) const {
    while (step.load() < number) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

class ProcessesTest : public testing::Test {
 protected:
  ProcessesTest() : in_(schema_), out_(schema_) {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared;
    in_.fill(1);
    ReplayBuffer::remove(place_);
  }
  ~ProcessesTest() override {
    munmap(shared_, sizeof(Shared));
    ReplayBuffer::remove(place_);
  }

  ReplayBuffer make(uint64_t capacity) const { return ReplayBuffer::create(schema_, {.capacity = capacity}, place_); }

  // Begins a row, tells so, and never comes back.
  void get_stuck(ReplayBuffer& buffer) const {
    buffer.ring().write(buffer.ring().reserve(1), [&](uint64_t) {
      shared_->step.fetch_add(1);
      while (true) pause();
    });
  }

  static void kill_and_wait(pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(wait_for(child), 128 + SIGKILL);
  }

  // How many slots hold no whole row.
  static uint64_t missing(const ReplayBuffer& buffer) {
    uint64_t count = 0;
    for (uint64_t slot = 0; slot < buffer.capacity(); ++slot) count += buffer.ring().id_in(slot) == kNoRow ? 1 : 0;
    return count;
  }

  void add(ReplayBuffer& buffer, uint64_t rows) const {
    for (uint64_t i = 0; i < rows; ++i) buffer.add(in_.inputs(), 1);
  }

  Schema schema_ = test::checked_schema();
  CheckedRows in_, out_;
  Shared* shared_;
  Place place_ = Place::in_shared("processes_test-" + std::to_string(getpid()));
};

TEST_F(ProcessesTest, RowsGoFromOneToTheOther) {
  const pid_t child = start_child([&] {
    ReplayBuffer buffer = ReplayBuffer::attach(place_, 10);  // before it is there
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

TEST_F(ProcessesTest, TheSlotOfADeadWriterIsTakenOver) {
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    ReplayBuffer mine = ReplayBuffer::attach(place_);
    get_stuck(mine);
    return 0;
  });
  shared_->wait_for_step(1);
  add(buffer, 8);
  EXPECT_EQ(missing(buffer), 1u);  // while it lives the slot is its own, and nobody waits for it
  EXPECT_EQ(buffer.total_added(), 8u);
  kill_and_wait(child);
  add(buffer, 4);
  EXPECT_EQ(missing(buffer), 0u);
  EXPECT_EQ(buffer.total_added(), 12u);
}

// As programs do that become daemons: the numbers of the buffer's descriptors are those of another file then.
void exchange_descriptors(const std::string& path) {
  for (int i = 3; i < 100; ++i) close(i);
  const int other = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  for (int i = other + 1; i < 100; ++i) dup2(other, i);
}

TEST_F(ProcessesTest, AChildThatHasClosedItsDescriptorsIsAlive) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    exchange_descriptors(folder / "log");
    get_stuck(buffer);
    return 0;
  });
  shared_->wait_for_step(1);
  add(buffer, 8);
  EXPECT_EQ(missing(buffer), 1u);
  EXPECT_EQ(test::run_in_child([&] {
              exchange_descriptors(folder / "log");
              add(buffer, 8);
              return missing(buffer) == 1 ? 42 : 1;  // and knows that the other is
            }),
            42);
  kill_and_wait(child);
  add(buffer, 4);
  EXPECT_EQ(missing(buffer), 0u);
}

TEST_F(ProcessesTest, WithoutDescriptorAndNameAChildIsToldWhatToDo) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = make(4);
  ASSERT_TRUE(ReplayBuffer::remove(place_));
  const std::string expected = place_.text() +
                               ": cannot open it once more: its descriptor was closed and its name is gone; leave "
                               "inherited descriptors open, or remove the buffer later";
  EXPECT_EQ(test::run_in_child([&] {
              exchange_descriptors(folder / "log");
              return test::message_of([&] { add(buffer, 1); }) == expected ? 42 : 1;
            }),
            42);
  add(buffer, 1);
  EXPECT_EQ(buffer.size(), 1u);
}

// Closed after it has joined: others take its rows for those of a dead process, and it can no longer ask about others.
TEST_F(ProcessesTest, WhoClosesItsOwnLockIsToldSo) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    get_stuck(buffer);
    return 0;
  });
  shared_->wait_for_step(1);
  const std::string expected = place_.text() +
                               ": somebody has closed the descriptors of this process for it; leave "
                               "them open, or attach to it again afterwards";
  EXPECT_EQ(test::run_in_child([&] {
              add(buffer, 1);
              exchange_descriptors(folder / "log");
              return test::message_of([&] { add(buffer, 8); }) == expected ? 42 : 1;
            }),
            42);
  kill_and_wait(child);
}

TEST_F(ProcessesTest, AStoppedWriterBlocksNobody) {
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    ReplayBuffer mine = ReplayBuffer::attach(place_);
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

// A child that goes on with the handle of its parent is another writer: its death is its own.
TEST_F(ProcessesTest, AForkedChildHasAnIndexOfItsOwn) {
  ReplayBuffer buffer = make(4);
  add(buffer, 1);
  const pid_t child = start_child([&] {
    add(buffer, 1);
    get_stuck(buffer);
    return 0;
  });
  shared_->wait_for_step(1);
  kill_and_wait(child);
  add(buffer, 4);
  EXPECT_EQ(missing(buffer), 0u);
  EXPECT_EQ(buffer.total_added(), 6u);
}

// The other way round: a child that lives on does not keep its dead parent alive.
TEST_F(ProcessesTest, AForkedChildDoesNotHideTheDeathOfItsParent) {
  ReplayBuffer buffer = make(4);
  const pid_t parent = start_child([&] {
    ReplayBuffer mine = ReplayBuffer::attach(place_);
    start_child([&] {
      shared_->step.fetch_add(1);
      while (!shared_->stop.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      add(mine, 1);
      shared_->step.fetch_add(1);
      return 0;
    });
    get_stuck(mine);
    return 0;
  });
  shared_->wait_for_step(2);
  kill_and_wait(parent);
  add(buffer, 4);
  EXPECT_EQ(missing(buffer), 0u);
  shared_->stop = true;
  shared_->wait_for_step(3);  // and can still add
  EXPECT_EQ(buffer.total_added(), 5u);
}

TEST_F(ProcessesTest, AForkedChildWritesAlsoWhenTheNameIsGone) {
  ReplayBuffer buffer = make(4);
  ASSERT_TRUE(ReplayBuffer::remove(place_));
  EXPECT_EQ(test::run_in_child([&] {
              add(buffer, 3);
              return 0;
            }),
            0);
  EXPECT_EQ(buffer.size(), 3u);
}

TEST_F(ProcessesTest, AForkedChildHasItsOwnCopyOfPrivateMemory) {
  ReplayBuffer buffer = ReplayBuffer::create(schema_, {.capacity = 4});
  add(buffer, 1);
  EXPECT_EQ(test::run_in_child([&] {
              add(buffer, 2);
              return buffer.size() == 3 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(buffer.size(), 1u);
}

// The child has the slot that a thread of its parent was writing, and not that thread. With one slot it once looked for
// another for ever.
TEST_F(ProcessesTest, AForkInTheMiddleOfARowOfPrivateMemoryBlocksNobody) {
  ReplayBuffer buffer = ReplayBuffer::create(schema_, {.capacity = 1});
  int code = 0;
  buffer.ring().write(buffer.ring().reserve(1), [&](uint64_t) {
    code = test::run_in_child([&] {
      alarm(30);
      add(buffer, 3);
      return buffer.read(buffer.ring().window().end - 1, out_.outputs()) && out_.good() ? 0 : 1;
    });
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(missing(buffer), 0u);  // the parent has its row
  EXPECT_EQ(buffer.ring().id_in(0), 0u);
}

// Nobody is left; the next who comes finds the rows, and no slot that is busy for ever.
TEST_F(ProcessesTest, AFileSurvivesTheDeathOfAll) {
  const test::TemporaryFolder folder;
  place_ = Place::in_file(folder / "buffer");
  const pid_t child = start_child([&] {
    ReplayBuffer buffer = make(10);
    add(buffer, 13);
    get_stuck(buffer);
    return 0;
  });
  shared_->wait_for_step(1);
  kill_and_wait(child);
  ReplayBuffer buffer = ReplayBuffer::attach(place_);
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
TEST_F(ProcessesTest, ACreatorThatDiesLeavesAllOrNothing) {
  const test::TemporaryFolder folder;
  place_ = Place::in_file(folder / "buffer");
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
    ReplayBuffer buffer = ReplayBuffer::attach(place_);
    add(buffer, 1);
    EXPECT_EQ(buffer.size(), 1u);
    EXPECT_TRUE(ReplayBuffer::remove(place_));
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
TEST_F(ProcessesTest, WithoutUnnamedFilesTheNextCreatorRemovesWhatADeadOneLeft) {
  const test::TemporaryFolder folder;
  place_ = Place::in_file(folder / "buffer");
  write_file(folder / ".tmp-quern-1234-0x7f", "not ours");
  const auto temporaries = [&] { return test::names_in(folder.path()).size() - 1; };
  size_t left = 0;
  for (int i = 0; i < 200 && left == 0; ++i) {
    const pid_t child = start_child([&] {
      if (!forbid_unnamed_files()) return test::kNotPermitted;
      while (true) {
        make(100000);
        ReplayBuffer::remove(place_);
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kill(child, SIGKILL);
    if (wait_for(child) == test::kNotPermitted) GTEST_SKIP() << "filtering system calls takes more rights";
    ReplayBuffer::remove(place_);
    left = temporaries();
  }
  EXPECT_GT(left, 0u) << "none was killed while it made one: the test shows nothing";
  EXPECT_EQ(test::run_in_child([&] {
              if (!forbid_unnamed_files()) return test::kNotPermitted;
              ReplayBuffer buffer = make(10);
              add(buffer, 1);
              return buffer.size() == 1 && ReplayBuffer::attach(place_).size() == 1 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(test::names_in(folder.path()), (std::set<std::string>{"buffer", ".tmp-quern-1234-0x7f"}));
}

// Whoever waits for a name finds all of it.
TEST_F(ProcessesTest, AttachingWhileItIsMade) {
  for (int i = 0; i < 10; ++i) {
    const pid_t child = start_child([&] {
      const ReplayBuffer buffer = make(100000);
      while (true) pause();
      return 0;
    });
    {
      ReplayBuffer buffer = ReplayBuffer::attach(place_, 60);
      add(buffer, 1);
      EXPECT_EQ(buffer.size(), 1u);
    }
    kill_and_wait(child);
    EXPECT_TRUE(ReplayBuffer::remove(place_));
  }
}

TEST_F(ProcessesTest, OnlySoManyCanWriteAtOnce) {
  const ReplayBuffer buffer = make(4);
  const int descriptor = open(place_.path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  // All indices but the one that is in use.
  for (uint16_t index = 0; index < Writers::kMost; ++index) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_start = (off_t{1} << 62) + index;
    lock.l_len = 1;
    static_cast<void>(fcntl(descriptor, F_OFD_SETLK, &lock));
  }
  EXPECT_EQ(test::message_of([&] { ReplayBuffer::attach(place_); }),
            place_.text() + ": expected at most 4096 processes at once, found as many already");
  close(descriptor);
  EXPECT_EQ(ReplayBuffer::attach(place_).capacity(), 4u);
}

// Four processes that add and four that read, of which one that adds is killed every 50 ms (every second where the test
// is asked to run longer than a few seconds) and replaced by another.
class KillingTest : public ProcessesTest {
 protected:
  pid_t start_writer(ReplayBuffer& inherited, uint64_t seed) {
    return start_child([&, seed] {
      const auto attached = seed % 2 == 0 ? nullptr : std::make_unique<ReplayBuffer>(ReplayBuffer::attach(place_));
      ReplayBuffer& buffer = attached ? *attached : inherited;
      CheckedRows rows(schema_, 5);
      rows.fill(seed);
      for (size_t i = 0; !shared_->stop.load(); ++i) {
        buffer.add(rows.inputs(), 1 + i % 5);
        shared_->added.fetch_add(1 + i % 5);
      }
      return 0;
    });
  }

  pid_t start_reader(ReplayBuffer& buffer, uint64_t seed) {
    return start_child([&, seed] {
      CheckedRows row(schema_);
      std::mt19937_64 generator(seed);
      while (!shared_->stop.load()) {
        const Window window = buffer.ring().window();
        if (window.size() == 0) continue;
        const bool there = buffer.read(window.begin + generator() % window.size(), row.outputs());
        (!there ? shared_->missed : row.good() ? shared_->good : shared_->bad).fetch_add(1);
      }
      return 0;
    });
  }

  void run(uint64_t capacity) {
    constexpr uint64_t kEach = 4;
    const double seconds = test::stress_seconds();
    const auto pause = std::chrono::milliseconds(seconds > 5 ? 1000 : 50);
    const int kills = static_cast<int>(seconds * 1000) / static_cast<int>(pause.count());
    ReplayBuffer buffer = make(capacity);
    std::vector<pid_t> writers, readers;
    uint64_t seed = 0;
    for (uint64_t i = 0; i < kEach; ++i) {
      writers.push_back(start_writer(buffer, ++seed));
      readers.push_back(start_reader(buffer, i));
    }
    for (int i = 0; i < kills; ++i) {
      const uint64_t before = shared_->added.load();
      std::this_thread::sleep_for(pause);
      pid_t& victim = writers[static_cast<size_t>(i) % kEach];
      kill_and_wait(victim);
      victim = start_writer(buffer, ++seed);
      for (int wait = 0; shared_->added.load() == before && wait < 10000; ++wait) usleep(1000);
      ASSERT_GT(shared_->added.load(), before) << "nobody adds any more after " << i << " kills";
    }
    for (int wait = 0; shared_->good.load() <= 1000 && wait < 60000; ++wait) usleep(1000);
    for (size_t i = 0; i < kEach; i += 2) kill_and_wait(writers[i]);
    shared_->stop = true;
    for (size_t i = 1; i < kEach; i += 2) EXPECT_EQ(wait_for(writers[i]), 0);
    for (const pid_t reader : readers) EXPECT_EQ(wait_for(reader), 0);
    const uint64_t abandoned = missing(buffer);
    add(buffer, buffer.capacity());
    EXPECT_EQ(missing(buffer), 0u);
    EXPECT_EQ(shared_->bad.load(), 0u);
    EXPECT_GT(shared_->good.load(), 1000u);
    EXPECT_GE(buffer.total_added() - capacity, shared_->added.load());
    const uint64_t lost = buffer.ring().window().end - buffer.total_added();
    std::printf(
        "  %d kills: %llu rows added, %llu read, %llu not there, %llu torn; %llu ids lost or passed, %llu slots "
        "were left busy at the end\n",
        kills + 2, static_cast<unsigned long long>(shared_->added.load()),
        static_cast<unsigned long long>(shared_->good.load()), static_cast<unsigned long long>(shared_->missed.load()),
        static_cast<unsigned long long>(shared_->bad.load()), static_cast<unsigned long long>(lost),
        static_cast<unsigned long long>(abandoned));
  }
};

TEST_F(KillingTest, SmallRows) { run(64); }

TEST_F(KillingTest, LargeRows) {
  schema_ = test::checked_schema(12280);  // 49,184 bytes: nearly all of the time a writer is in the middle of a row
  in_ = CheckedRows(schema_);
  in_.fill(1);
  run(700);
}

}  // namespace
}  // namespace quern::replay
