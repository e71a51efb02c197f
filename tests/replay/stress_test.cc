// Threads that wrap a buffer all the time and others that read it: no row is ever mixed.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "replay/buffer.h"
#include "tests/replay/checked_rows.h"
#include "tests/support/watchdog.h"

namespace quern::replay {
namespace {

using test::CheckedRows;

struct Counts {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> added{0}, good{0}, bad{0}, missed{0};
};

void add_batches(ReplayBuffer& buffer, Counts& counts, uint64_t seed) {
  constexpr size_t kRows = 7;
  CheckedRows rows(buffer.schema(), kRows);
  const std::vector<float> priorities(kRows, 0.5f);
  rows.fill(seed);
  for (size_t i = 0; !counts.stop.load(std::memory_order_relaxed); ++i) {
    const size_t count = 1 + i % kRows;
    rows.set(3, 0, seed * 1000000 + i);
    rows.seal(0);
    const bool given = buffer.options().prioritised && i % 2 == 0;
    buffer.add(rows.inputs(), count, given ? std::span(priorities).first(count) : std::span<const float>());
    counts.added.fetch_add(count, std::memory_order_relaxed);
  }
}

void read_rows(ReplayBuffer& buffer, Counts& counts, uint64_t seed) {
  CheckedRows row(buffer.schema());
  std::mt19937_64 generator(seed);
  while (!counts.stop.load(std::memory_order_relaxed)) {
    const Window window = buffer.ring().window();
    if (window.size() == 0) continue;
    const uint64_t id = window.begin + generator() % window.size();
    if (!buffer.read(id, row.outputs())) {
      counts.missed.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    (row.good() ? counts.good : counts.bad).fetch_add(1, std::memory_order_relaxed);
    const float priority = static_cast<float>(generator() % 100);
    if (buffer.options().prioritised) buffer.update_priorities(std::span(&id, 1), std::span(&priority, 1));
  }
}

void stress(ReplayBuffer& buffer) {
  constexpr uint64_t kThreads = 4, kLaps = 10;
  const double seconds = test::stress_seconds();
  const test::Watchdog watchdog("a stressed replay buffer", std::chrono::seconds(120 + static_cast<int>(seconds)));
  Counts counts;
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] { add_batches(buffer, counts, t); });
      threads.emplace_back([&, t] { read_rows(buffer, counts, t); });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const auto enough = [&] { return counts.added.load() > kLaps * buffer.capacity() && counts.good.load() > 1000; };
    for (int i = 0; i < 60000 && !enough(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    counts.stop = true;
  }
  EXPECT_EQ(counts.bad.load(), 0u);
  EXPECT_GT(counts.good.load(), 1000u);
  EXPECT_EQ(buffer.total_added(), counts.added.load());
  EXPECT_GT(counts.added.load(), kLaps * buffer.capacity());  // it did wrap
  testing::Test::RecordProperty("good_rows", std::to_string(counts.good.load()));
  std::printf("  %llu rows added, %llu read, %llu gone before they were read, %llu torn\n",
              static_cast<unsigned long long>(counts.added.load()), static_cast<unsigned long long>(counts.good.load()),
              static_cast<unsigned long long>(counts.missed.load()),
              static_cast<unsigned long long>(counts.bad.load()));
}

TEST(ReplayStress, SmallRowsInASmallRing) {
  ReplayBuffer buffer = ReplayBuffer::create(test::checked_schema(), {.capacity = 64});
  stress(buffer);
}

// 700 x 49,184 bytes: large enough for stores past the caches, and wrapped many times a second.
TEST(ReplayStress, LargeRows) {
  ReplayBuffer buffer = ReplayBuffer::create(test::checked_schema(12280), {.capacity = 700});
  stress(buffer);
}

TEST(ReplayStress, Prioritised) {
  ReplayBuffer buffer = ReplayBuffer::create(test::checked_schema(), {.capacity = 100, .prioritised = true});
  stress(buffer);
  uint64_t sum = 0;
  for (uint64_t slot = 0; slot < buffer.capacity(); ++slot) sum += buffer.tree()->get(slot);
  EXPECT_EQ(buffer.tree()->total(), sum);
}

}  // namespace
}  // namespace quern::replay
