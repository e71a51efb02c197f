// Processes that add are killed repeatedly: no row is torn, and the others continue.
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "tests/replay/processes.h"

namespace quern::replay {
namespace {

// Four processes that add and four that read, of which one that adds is killed every 50 ms (every second where the test
// is asked to run longer than a few seconds) and replaced by another.
class KillingTest : public ProcessesTest {
 protected:
  pid_t start_writer(ReplayBuffer& inherited, uint64_t seed) {
    return start_child([&, seed] {
      const auto attached = seed % 2 == 0 ? nullptr : std::make_unique<ReplayBuffer>(ReplayBuffer::attach(storage_));
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
      ASSERT_GT(shared_->added.load(), before) << "no process adds rows after " << i << " kills";
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
