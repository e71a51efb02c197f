// A save that is killed at any moment, or meets a full disk, costs nothing that was saved before.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "support/child_process.h"
#include "support/temporary_folder.h"
#include "toy_run.h"

namespace quern::checkpoint {
namespace {

namespace fs = std::filesystem;

// The newest step, which must be whole and of one step; every other one that is there must be whole too.
uint64_t check_folder(const fs::path& folder) {
  std::vector<std::string> invalid;
  const auto found = find_newest_valid(folder, [&](const std::string& reason) { invalid.push_back(reason); });
  EXPECT_TRUE(invalid.empty()) << invalid.front();
  if (!found) return 0;
  ToyRun run(2000);
  found->load(run.tensors());
  EXPECT_TRUE(run.is(found->state().step));
  EXPECT_EQ(found->state(), state_at(found->state().step));
  return found->state().step;
}

// Shared with the child: what it has finished.
struct Shared {
  Shared()
      : finished(*new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                     std::atomic<uint64_t>(0)) {}
  std::atomic<uint64_t>& finished;
};

TEST(Crash, KilledAtRandomMomentsTheNewestFinishedSaveIsThere) {
  const test::TemporaryFolder folder;
  const Shared shared;
  std::mt19937 random(3);
  uint64_t before = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = test::start_child([&] {
      ToyRun run(2000);
      for (uint64_t step = before + 1;; ++step) {
        save_step(folder.path(), run, step);
        shared.finished.store(step, std::memory_order_release);  // pairs with the acquire after the kill
        remove_old(folder.path(), step, {.keep = 2, .keep_best = false});
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    kill(child, SIGKILL);
    ASSERT_EQ(test::wait_for(child), 128 + SIGKILL);
    const uint64_t now = check_folder(folder.path());
    ASSERT_GE(now, shared.finished.load(std::memory_order_acquire));
    ASSERT_GE(now, before);
    before = now;
  }
  EXPECT_GT(before, 0u);
}

enum class Traced { kKilled, kEnded, kNotPermitted, kFailed };

// Lets a child that saves step 2 over (or after) step 1 make `calls` stops at system calls, then kills it, if it has
// not ended before. Every change of the disk is a system call, so counting up visits every state that a kill can leave.
Traced kill_after_system_calls(const fs::path& folder, uint64_t step, int calls) {
  const pid_t child = test::start_child([&] {
    ToyRun run(2000);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return test::kNotPermitted;
    raise(SIGSTOP);
    run.set(step);
    save(folder, run.tensors(), state_at(step), kToyConfig);
    remove_old(folder, step, {.keep = 1, .keep_best = false});
    return 0;
  });
  int status = 0;
  for (int i = 0; i <= calls; ++i) {
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == test::kNotPermitted) return Traced::kNotPermitted;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Traced::kEnded;
    if (!WIFSTOPPED(status)) return Traced::kFailed;
    if (i < calls) ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return Traced::kKilled;
}

// Skips the test where tracing is not permitted, and for no other reason.
void kill_at_every_system_call(uint64_t step) {
  int calls = 1;
  for (;; ++calls) {
    const test::TemporaryFolder folder;
    ToyRun run(2000);
    save_step(folder.path(), run, 1);
    const Traced traced = kill_after_system_calls(folder.path(), step, calls);
    if (traced == Traced::kNotPermitted) GTEST_SKIP() << "tracing a process takes more rights";
    ASSERT_NE(traced, Traced::kFailed) << calls;
    const uint64_t found = check_folder(folder.path());
    ASSERT_TRUE(found == 1 || found == step) << found;
    remove_leftovers(folder.path());
    for (const std::string& name : test::names_in(folder.path())) ASSERT_TRUE(name.starts_with("step-")) << name;
    if (traced == Traced::kEnded) break;
    ASSERT_LT(calls, 5000);
  }
  EXPECT_GT(calls, 40);  // it did visit the middle of the save
}

TEST(Crash, KilledAtEverySystemCallOfASaveOneWholeCheckpointIsThere) { kill_at_every_system_call(2); }

TEST(Crash, KilledAtEverySystemCallOfAReplacementOneWholeCheckpointIsThere) { kill_at_every_system_call(1); }

// 0 when the save fails with the reason, step 1 is whole, and there is nothing else.
int check_failed_save(const fs::path& folder, ToyRun& run, const char* reason) {
  std::string message = "no error";
  try {
    save_step(folder, run, 2);
  } catch (const Error& error) {
    message = error.what();
  }
  if (message.find(reason) == std::string::npos || message.find(".safetensors") == std::string::npos) {
    std::fprintf(stderr, "%s\n", message.c_str());
    return 1;
  }
  if (test::names_in(folder) != std::set<std::string>{"step-00000001"}) return 2;
  return check_folder(folder) == 1 ? 0 : 3;
}

// The limit falls into the header, the values of the model (64 kB), and of the optimizer.
TEST(FullDisk, FileSizeLimitCostsNothing) {
  for (const size_t limit : {size_t{10}, size_t{5'000}, size_t{70'000}, size_t{150'000}}) {
    const test::TemporaryFolder folder;
    ToyRun run(2000);
    save_step(folder.path(), run, 1);
    const int code = test::run_in_child([&] {
      test::limit_file_size(limit);
      return check_failed_save(folder.path(), run, "File too large");
    });
    EXPECT_EQ(code, 0) << limit;
  }
}

TEST(FullDisk, NoSpaceLeftCostsNothing) {
  for (const size_t pages : {size_t{80}, size_t{100}, size_t{120}}) {  // one checkpoint is 264 kB, 68 pages
    const test::TemporaryFolder folder;
    const int code = test::run_in_child([&] {
      if (!test::mount_tiny_disk(folder.path(), pages * 4096)) return test::kNotPermitted;
      ToyRun run(2000);
      save_step(folder.path(), run, 1);
      return check_failed_save(folder.path(), run, "No space left on device");
    });
    if (code == test::kNotPermitted) GTEST_SKIP() << "mounting a small disk takes more rights";
    EXPECT_EQ(code, 0) << pages;
  }
}

}  // namespace
}  // namespace quern::checkpoint
