// Buffers with a rate limit: adding and sampling wait for each other.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/clock.h"
#include "numbered_rows.h"
#include "support/message.h"
#include "support/watchdog.h"

namespace quern::replay {
namespace {

using quern::test::message_of;

class LimitedBuffer : public ::testing::Test {
 protected:
  void add(const Wait& wait) {
    const uint64_t number = 7;
    const std::byte* const column = reinterpret_cast<const std::byte*>(&number);
    buffer_.add({&column, 1}, 1, {}, wait);
  }
  void sample(const Wait& wait, Rule rule = Rule::kUniform, size_t rows = 1) {
    std::vector<uint64_t> numbers(rows);
    std::byte* const column = reinterpret_cast<std::byte*>(numbers.data());
    sampler_.sample({.rows = rows, .rule = rule}, {{&column, 1}}, wait);
  }

  quern::test::Watchdog watchdog_{"a limited buffer"};
  ReplayBuffer buffer_ = ReplayBuffer::create(
      test::number_schema(), {.capacity = 100, .limit = {.samples_per_insert = 1, .minimum = 4}, .prefault = false});
  Sampler sampler_{buffer_, 1};
};

// Only the Python package asked the limiter; add() in C++ went ahead.
TEST_F(LimitedBuffer, AddAndSampleRespectTheLimit) {
  EXPECT_NE(message_of([&] { sample(0.0); }).find("waited too long for rows"), std::string::npos);
  for (int i = 0; i < 5; ++i) add(0.0);  // four are free, one more at a balance of 0
  EXPECT_THROW(add(0.0), TimedOut);
  const double before = seconds_now();
  EXPECT_THROW(add(0.05), TimedOut);
  EXPECT_GE(seconds_now() - before, 0.05);
  EXPECT_EQ(buffer_.total_added(), 5u);
  EXPECT_EQ(buffer_.limiter().balance(), 1);  // what was refused is not counted
}

TEST_F(LimitedBuffer, WaiterContinuesWhenTheOtherSideAdvances) {
  for (int i = 0; i < 5; ++i) add(0.0);
  std::thread waiting([&] { add({}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(buffer_.total_added(), 5u);
  sample({});
  waiting.join();
  EXPECT_EQ(buffer_.total_added(), 6u);
}

TEST_F(LimitedBuffer, WaitCanBeInterrupted) {
  struct Interrupted {};
  for (int i = 0; i < 5; ++i) add(0.0);
  EXPECT_THROW(add(Wait(Wait::kForever, [] { throw Interrupted(); })), Interrupted);
  EXPECT_EQ(buffer_.total_added(), 5u);
}

TEST_F(LimitedBuffer, ImpossibleRequestIsNotCounted) {
  for (int i = 0; i < 5; ++i) add(0.0);
  EXPECT_NE(message_of([&] { sample({}, Rule::kWithoutReplacement, 6); }).find("expected at least 6 rows"),
            std::string::npos);
  EXPECT_EQ(buffer_.limiter().balance(), 1);
}

TEST_F(LimitedBuffer, RowsFromAFileAreNotLimited) {
  const uint64_t number = 7;
  const std::byte* const column = reinterpret_cast<const std::byte*>(&number);
  for (int i = 0; i < 50; ++i) buffer_.add_unlimited({&column, 1}, 1, {});
  EXPECT_EQ(buffer_.limiter().balance(), 0);
}

}  // namespace
}  // namespace quern::replay
