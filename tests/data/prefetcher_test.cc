#include "data/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "data/batch_source.h"
#include "support/watchdog.h"

namespace quern::data {
namespace {

// Token p is p; reading `bad` throws.
class Positions : public TokenStream {
 public:
  explicit Positions(uint64_t bad = UINT64_MAX) : bad_(bad) {}
  uint64_t size() const override { return 10'000; }
  void copy(uint64_t position, size_t count, int32_t* out) const override {
    if (position <= bad_ && bad_ < position + count) throw std::runtime_error("bad token");
    std::iota(out, out + count, static_cast<int32_t>(position));
    reads.fetch_add(1);
  }
  mutable std::atomic<size_t> reads{0};

 private:
  uint64_t bad_;
};

constexpr uint32_t kContext = 5, kSequences = 7, kMicroBatchSize = 3;

struct Source {
  explicit Source(uint64_t bad = UINT64_MAX)
      : stream(bad),
        batches({&stream, 0, stream.size()}, {.seed = 3, .context = kContext, .sequences_per_step = kSequences}) {}
  PrefetchOptions options(uint32_t first_step = 0) const {
    return {.targets_per_sequence = kContext,
            .sequences_per_step = kSequences,
            .batches = {{0, 3}, {3, 6}, {6, 7}},
            .first_step = first_step};
  }
  Positions stream;
  TrainingBatches batches;
};

// Micro-batches of 3, 3 and 1 sequences; far more of them than there are buffers.
TEST(Prefetcher, ReturnsEveryBatchInOrder) {
  const test::Watchdog watchdog("order");
  const Source source;
  Prefetcher prefetcher(source.batches, source.options(5));
  std::vector<int32_t> inputs(kMicroBatchSize * kContext), targets(kMicroBatchSize * kContext);
  for (uint32_t step = 5; step < 300; ++step) {
    for (const uint32_t first : {0u, 3u, 6u}) {
      Batch* batch = prefetcher.next();
      ASSERT_NE(batch, nullptr);
      ASSERT_EQ(batch->step, step);
      ASSERT_EQ(batch->first, first);
      ASSERT_EQ(batch->sequences, first == 6 ? 1u : 3u);
      source.batches.fill(step, first, batch->sequences, inputs.data(), targets.data());
      const size_t n = batch->sequences * kContext;
      ASSERT_TRUE(std::equal(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(n),
                             batch->columns.ints(kTokensColumn).begin()));
      ASSERT_TRUE(std::equal(targets.begin(), targets.begin() + static_cast<ptrdiff_t>(n),
                             batch->columns.ints(kTargetsColumn).begin()));
      prefetcher.give_back(batch);
    }
  }
}

// Two reads a sequence: the tokens, and the one after the last.
TEST(Prefetcher, ReadsAheadAsFarAsItHasBuffers) {
  const test::Watchdog watchdog("ahead");
  const Source source;
  Prefetcher prefetcher(source.batches, source.options());
  constexpr size_t kReads = 2 * (Prefetcher::kAhead / 3 * kSequences + Prefetcher::kAhead % 3 * kMicroBatchSize);
  while (source.stream.reads < kReads) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(source.stream.reads, kReads);
  prefetcher.give_back(prefetcher.next());
  while (source.stream.reads == kReads) std::this_thread::yield();
}

// As workers do it: taken by one thread, given back by others, some of them late.
TEST(Prefetcher, BatchesCanBeReturnedByOtherThreadsInAnyOrder) {
  const test::Watchdog watchdog("other threads");
  const Source source;
  Prefetcher prefetcher(source.batches, source.options());
  BoundedQueue<Batch*> queue(128);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (const std::optional<Batch*> batch = queue.pop()) {
        if (t == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
        EXPECT_EQ((*batch)->columns.ints(kTokensColumn)[1], (*batch)->columns.ints(kTargetsColumn)[0]);
        prefetcher.give_back(*batch);
      }
    });
  }
  for (uint32_t i = 0; i < 3000; ++i) {
    Batch* batch = prefetcher.next();
    ASSERT_EQ(batch->step, i / 3);
    queue.push(batch);
  }
  queue.close();
}

TEST(Prefetcher, ExceptionOfTheSourceArrivesInOrder) {
  const test::Watchdog watchdog("throws");
  const Source whole;
  const uint32_t bad_step = 11;
  const uint64_t bad = whole.batches.position(bad_step, 4);
  const Source source(bad);
  const auto reads_bad = [&](uint32_t step, uint32_t first) {
    for (uint32_t s = first; s < std::min(first + kMicroBatchSize, kSequences); ++s) {
      const uint64_t at = whole.batches.position(step, s);
      if (at <= bad && bad <= at + kContext) return true;
    }
    return false;
  };
  Prefetcher prefetcher(source.batches, source.options());
  for (uint32_t step = 0, first = 0; !reads_bad(step, first);) {
    Batch* batch = prefetcher.next();
    ASSERT_EQ(batch->step, step);
    ASSERT_EQ(batch->first, first);
    prefetcher.give_back(batch);
    first = first == 6 ? 0 : first + 3;
    step += first == 0;
  }
  EXPECT_THROW(prefetcher.next(), std::runtime_error);
  EXPECT_THROW(prefetcher.next(), std::runtime_error);
  prefetcher.stop();
  EXPECT_THROW(prefetcher.next(), std::runtime_error);
}

// Of whoever waits for a batch that never comes back, and of the producer.
TEST(Prefetcher, StopEndsEveryWait) {
  const test::Watchdog watchdog("stop");
  const Source source;
  for (int trial = 0; trial < 20; ++trial) {
    Prefetcher prefetcher(source.batches, source.options());
    for (size_t i = 0; i < Prefetcher::kAhead; ++i) prefetcher.next();
    std::jthread waiting([&] { EXPECT_EQ(prefetcher.next(), nullptr); });
    std::this_thread::sleep_for(std::chrono::microseconds(trial * 20));
    prefetcher.stop();
    waiting.join();
    EXPECT_EQ(prefetcher.next(), nullptr);
  }
}

TEST(Prefetcher, CanBeDestroyedAtAnyMoment) {
  const test::Watchdog watchdog("destroyed");
  const Source source, broken(50);
  for (int trial = 0; trial < 100; ++trial) {
    const Prefetcher unused(source.batches, source.options());
    Prefetcher used(source.batches, source.options());
    used.give_back(used.next());
    used.next();
    const Prefetcher failed(broken.batches, broken.options());
    if (trial % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace quern::data
