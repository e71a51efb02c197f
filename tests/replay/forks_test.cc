// Children made by fork(), with the descriptors and buffers that they inherit.
#include <fcntl.h>

#include <memory>

#include "replay/row_copy.h"
#include "replay/sampler.h"
#include "replay/snapshot.h"
#include "tests/replay/processes.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

class ForksTest : public ProcessesTest {
 protected:
  void store(ReplayBuffer& buffer, uint64_t slot) const {
    for (size_t c = 0; c < schema_.columns().size(); ++c) {
      copy_to_row(buffer.stored(c, slot), in_.inputs()[c], schema_.columns()[c].stored_bytes());
    }
  }
};

// As programs do that become daemons: the numbers of the buffer's descriptors are those of another file then.
void exchange_descriptors(const std::string& path) {
  for (int i = 3; i < 100; ++i) close(i);
  const int other = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  for (int i = other + 1; i < 100; ++i) dup2(other, i);
}

TEST_F(ForksTest, ChildThatClosedItsDescriptorsCountsAsAlive) {
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

TEST_F(ForksTest, ErrorTellsAChildWithoutDescriptorAndNameWhatToDo) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = make(4);
  ASSERT_TRUE(ReplayBuffer::remove(storage_));
  const std::string expected = storage_.text() +
                               ": cannot reopen it: its descriptor was closed and its name is gone; leave "
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
TEST_F(ForksTest, ClosingTheOwnLockIsAnError) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = make(4);
  const pid_t child = start_child([&] {
    get_stuck(buffer);
    return 0;
  });
  shared_->wait_for_step(1);
  const std::string expected = storage_.text() +
                               ": other code has closed this process's descriptors for it; leave "
                               "them open, or attach to it again afterwards";
  EXPECT_EQ(test::run_in_child([&] {
              add(buffer, 1);
              exchange_descriptors(folder / "log");
              return test::message_of([&] { add(buffer, 8); }) == expected ? 42 : 1;
            }),
            42);
  kill_and_wait(child);
}

// A child that closes what it inherited and opens a file of its own gets that file under the number of the buffer's
// descriptor. Dropping the buffer closed it.
TEST_F(ForksTest, ReusedDescriptorOfAChildIsNotClosed) {
  const test::TemporaryFolder folder;
  auto buffer = std::make_unique<ReplayBuffer>(make(4));
  EXPECT_EQ(test::run_in_child([&] {
              exchange_descriptors(folder / "log");
              buffer.reset();
              for (int i = 3; i < 100; ++i) {
                if (write(i, "x", 1) != 1) return i;
              }
              return 0;
            }),
            0);
  add(*buffer, 1);
  EXPECT_EQ(buffer->size(), 1u);
}

// A child that uses the handle of its parent is a separate writer, whose death does not affect the parent.
TEST_F(ForksTest, ForkedChildHasItsOwnIndex) {
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
TEST_F(ForksTest, ForkedChildDoesNotHideTheDeathOfItsParent) {
  ReplayBuffer buffer = make(4);
  const pid_t parent = start_child([&] {
    ReplayBuffer mine = ReplayBuffer::attach(storage_);
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

TEST_F(ForksTest, ForkedChildWritesAfterTheNameIsRemoved) {
  ReplayBuffer buffer = make(4);
  ASSERT_TRUE(ReplayBuffer::remove(storage_));
  EXPECT_EQ(test::run_in_child([&] {
              add(buffer, 3);
              return 0;
            }),
            0);
  EXPECT_EQ(buffer.size(), 3u);
}

// Rows that a child added to its copy of private memory were once lost without a word. Reading is allowed: a child may
// save the rows of the moment of the fork.
TEST_F(ForksTest, ForkedChildCannotUsePrivateMemory) {
  const test::TemporaryFolder folder;
  ReplayBuffer buffer = ReplayBuffer::create(schema_, {.capacity = 4});
  add(buffer, 1);
  const std::string end =
      ": expected the process that created this private buffer, found a child of fork(), which has a copy that the "
      "parent never sees; create the buffer with shared=\"name\"";
  EXPECT_EQ(test::run_in_child([&] {
              if (test::message_of([&] { add(buffer, 1); }) != "[replay] add" + end) return 1;
              Sampler sampler(buffer, 1);
              if (test::message_of([&] { sampler.sample({.rows = 1}, {out_.outputs()}); }) != "[replay] sample" + end) {
                return 2;
              }
              if (test::message_of([&] { buffer.clear(); }) != "[replay] clear" + end) return 3;
              if (!buffer.read(0, out_.outputs()) || !out_.good()) return 4;
              return save_snapshot(buffer, folder / "rows").rows == 1 ? 42 : 5;
            }),
            42);
  add(buffer, 1);
  EXPECT_EQ(buffer.size(), 2u);
}

// The child has the slot that a thread of its parent was writing, and not that thread. With one slot it once looked for
// another for ever.
TEST_F(ForksTest, ForkDuringAWriteToPrivateMemoryDoesNotBlock) {
  ReplayBuffer buffer = ReplayBuffer::create(schema_, {.capacity = 1});
  int code = 0;
  buffer.ring().write(buffer.ring().reserve(1), [&](uint64_t) {
    code = test::run_in_child([&] {
      alarm(30);
      for (int i = 0; i < 3; ++i)
        buffer.ring().write(buffer.ring().reserve(1), [&](uint64_t slot) { store(buffer, slot); });
      return buffer.read(buffer.ring().window().end - 1, out_.outputs()) && out_.good() ? 0 : 1;
    });
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(missing(buffer), 0u);  // the parent has its row
  EXPECT_EQ(buffer.ring().id_in(0), 0u);
}

}  // namespace
}  // namespace quern::replay
