// clear(): all rows are gone at once, for all who use the buffer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "replay/sampler.h"
#include "replay/snapshot.h"
#include "tests/replay/processes.h"
#include "tests/support/message.h"

namespace quern::replay {
namespace {

Schema numbers() { return Schema({{.name = "number", .dtype = DType::kU64}}); }

uint64_t add_number(ReplayBuffer& buffer, uint64_t number) {
  const std::byte* const column = reinterpret_cast<const std::byte*>(&number);
  return buffer.add({&column, 1}, 1);
}

uint64_t sample_number(Sampler& sampler, Rule rule = Rule::kUniform) {
  uint64_t number = 0;
  std::byte* const column = reinterpret_cast<std::byte*>(&number);
  sampler.sample({.rows = 1, .rule = rule}, {{&column, 1}});
  return number;
}

TEST(Clear, RemovesAllRowsAndKeepsCounting) {
  for (const bool prioritised : {false, true}) {
    ReplayBuffer buffer = ReplayBuffer::create(numbers(), {.capacity = 10, .prioritised = prioritised});
    Sampler sampler(buffer, 1);
    for (uint64_t i = 0; i < 14; ++i) add_number(buffer, i);
    buffer.clear();
    EXPECT_EQ(buffer.size(), 0u);
    EXPECT_EQ(buffer.total_added(), 14u);
    EXPECT_FALSE(buffer.ring().holds(13));
    EXPECT_EQ(test::message_of([&] { sample_number(sampler); }),
              "[replay] sample: expected at least one row in the buffer, found none");
    EXPECT_EQ(add_number(buffer, 14), 14u);
    EXPECT_EQ(buffer.size(), 1u);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(sample_number(sampler), 14u);
    if (prioritised) {
      EXPECT_EQ(sample_number(sampler, Rule::kPrioritised), 14u);
      EXPECT_EQ(buffer.tree()->total(), buffer.tree()->get(4));
    }
    for (uint64_t i = 15; i < 40; ++i) add_number(buffer, i);
    EXPECT_EQ(buffer.size(), 10u);
  }
}

TEST(Clear, TheRateLimitWaitsForItsMinimumAgain) {
  ReplayBuffer buffer = ReplayBuffer::create(numbers(), {.capacity = 10, .limit = {.minimum = 3}});
  Sampler sampler(buffer, 1);
  for (uint64_t i = 0; i < 5; ++i) add_number(buffer, i);
  sample_number(sampler);
  buffer.clear();
  uint64_t number = 0;
  std::byte* const column = reinterpret_cast<std::byte*>(&number);
  EXPECT_THROW(sampler.sample({.rows = 1}, {{&column, 1}}, Wait(0)), TimedOut);
  for (uint64_t i = 5; i < 8; ++i) add_number(buffer, i);
  EXPECT_GE(sample_number(sampler), 5u);
}

class ClearProcessesTest : public ProcessesTest {};

TEST_F(ClearProcessesTest, OtherProcessesSeeIt) {
  ReplayBuffer buffer = make(100);
  add(buffer, 60);
  EXPECT_EQ(test::run_in_child([&] {
              ReplayBuffer mine = ReplayBuffer::attach(storage_);
              mine.clear();
              return mine.size() == 0 ? 42 : 1;
            }),
            42);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_FALSE(buffer.read(59, out_.outputs()));
}

// Threads add and sample while another clears: whoever starts to sample after clear() returned gets no older row.
TEST(ClearStress, NoSampleReturnsARowOfBefore) {
  for (const bool prioritised : {false, true}) {
    ReplayBuffer buffer = ReplayBuffer::create(numbers(), {.capacity = 300, .prioritised = prioritised});
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> floor{0}, old{0}, samples{0};
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (!stop) add_number(buffer, 0);
      });
      threads.emplace_back([&, t] {
        Sampler sampler(buffer, t);
        uint64_t number = 0, id = 0;
        std::byte* const column = reinterpret_cast<std::byte*>(&number);
        while (!stop) {
          const uint64_t first = floor.load();
          try {
            sampler.sample({.rows = 1, .rule = prioritised ? Rule::kPrioritised : Rule::kUniform}, {{&column, 1}, &id});
            old += id < first ? 1 : 0;
            ++samples;
          } catch (const Error&) {  // empty
          }
        }
      });
    }
    for (int i = 0; i < 300 || samples.load() < 2000; ++i) {
      const uint64_t end = buffer.ring().window().end;
      buffer.clear();
      floor = end;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    stop = true;
    threads.clear();
    EXPECT_EQ(old.load(), 0u);
  }
}

}  // namespace
}  // namespace quern::replay
