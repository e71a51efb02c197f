// Processes that share a buffer in shared memory, for the tests of what they do to each other.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>

#include "replay/buffer.h"
#include "tests/replay/checked_rows.h"
#include "tests/support/child_process.h"
#include "tests/support/message.h"

namespace quern::replay {

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
    ReplayBuffer::remove(storage_);
  }
  ~ProcessesTest() override {
    munmap(shared_, sizeof(Shared));
    ReplayBuffer::remove(storage_);
  }

  ReplayBuffer make(uint64_t capacity) const { return ReplayBuffer::create(schema_, {.capacity = capacity}, storage_); }

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
  Storage storage_ = Storage::in_shared("processes_test-" + std::to_string(getpid()));
};

}  // namespace quern::replay
