// Proof that adding, reading and sampling allocate nothing and take no lock.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "benchmarks/lock_counter.h"
#include "replay/sampler.h"
#include "support/allocations.h"

namespace quern::replay {
namespace {

constexpr size_t kRows = 200;
constexpr size_t kCapacity = 500;  // small, so that a writer overwrites all of it while a draw waits for its core

struct Sampled {
  ReplayBuffer buffer =
      ReplayBuffer::create(Schema({{.name = "words", .dtype = DType::kU64, .shape = {100}},
                                   {.name = "bits", .dtype = DType::kU8, .shape = {64}, .encoding = Encoding::kBits}}),
                           {.capacity = kCapacity, .prioritised = true, .limit = {.minimum = 10}});
  Sampler sampler{buffer, 1};
  std::vector<uint64_t> words = std::vector<uint64_t>(kRows * 100), ids = std::vector<uint64_t>(kRows),
                        ages = std::vector<uint64_t>(kRows);
  std::vector<uint8_t> bits = std::vector<uint8_t>(kRows * 64);
  std::vector<float> weights = std::vector<float>(kRows, 1.0f);
  std::vector<uint64_t> row = std::vector<uint64_t>(100);
  std::vector<uint8_t> row_bits = std::vector<uint8_t>(64);

  void add(int times) {
    const std::byte* const from[] = {reinterpret_cast<const std::byte*>(row.data()),
                                     reinterpret_cast<const std::byte*>(row_bits.data())};
    for (int i = 0; i < times; ++i) buffer.add(from, 1);
  }
  // Every rule once, with what goes with it.
  void sample() {
    std::byte* const to[] = {reinterpret_cast<std::byte*>(words.data()), reinterpret_cast<std::byte*>(bits.data())};
    for (const Rule rule : {Rule::kUniform, Rule::kWithoutReplacement, Rule::kPrioritised, Rule::kRecent}) {
      if (!buffer.limiter().admit_samples(kRows, 0)) ADD_FAILURE();
      sampler.sample({.rows = kRows, .rule = rule, .half_life = 300}, {to, ids.data(), ages.data(), weights.data()});
    }
    buffer.update_priorities(ids, weights);
  }
};

TEST(ReplayCost, AllocatesNothing) {
  if (!quern::test::kCountsAllocations) GTEST_SKIP() << "allocations cannot be counted here";
  Sampled sampled;
  sampled.add(700);
  sampled.sample();
  const size_t before = quern::test::allocation_count;
  for (int i = 0; i < 20; ++i) sampled.sample();
  EXPECT_EQ(quern::test::allocation_count - before, 0u);
  void* volatile memory = std::malloc(100);  // the counter counts
  EXPECT_GT(quern::test::allocation_count - before, 0u);
  std::free(memory);
}

// In shared memory too, where the index of the process is looked up for every row.
TEST(ReplayCost, AddingAndReadingAllocateNothingAndTakeNoLock) {
  if (!quern::test::kCountsAllocations || !bench::lock_counts()) GTEST_SKIP() << "a sanitizer counts for itself here";
  const Storage storage = Storage::in_shared("cost_test-" + std::to_string(getpid()));
  ReplayBuffer::remove(storage);
  for (const bool shared : {false, true}) {
    Sampled sampled;
    if (shared) sampled.buffer = ReplayBuffer::create(sampled.buffer.schema(), {.capacity = 100}, storage);
    std::byte* const to[] = {reinterpret_cast<std::byte*>(sampled.words.data()), nullptr};
    const auto locks = [] { return bench::lock_counts()->locks; };
    const size_t allocations_before = quern::test::allocation_count;
    const long locks_before = locks();
    sampled.add(1000);
    bool there = false;
    for (uint64_t id = 0; id < 1000; ++id) there = sampled.buffer.read(id, to);
    EXPECT_EQ(quern::test::allocation_count - allocations_before, 0u);
    EXPECT_EQ(locks() - locks_before, 0);
    EXPECT_TRUE(there);
  }
  EXPECT_TRUE(ReplayBuffer::remove(storage));
}

TEST(ReplayCost, TakesNoLock) {
  if (!bench::lock_counts()) GTEST_SKIP() << "locks cannot be counted here";
  Sampled sampled;
  sampled.add(700);
  std::atomic<bool> ready{false}, stop{false}, leave{false};
  std::atomic<int> writing{1};
  std::jthread writer([&] {  // starting a thread may lock, so it starts before the count and ends after it
    ready = true;
    while (!stop.load()) sampled.add(10);
    --writing;
    while (!leave.load()) std::this_thread::yield();
  });
  while (!ready.load()) std::this_thread::yield();
  const long before = bench::lock_counts()->locks;
  std::exception_ptr failure;  // must not leave the writer running: its thread would be waited for without end
  try {
    for (int i = 0; i < 20; ++i) sampled.sample();
  } catch (...) {
    failure = std::current_exception();
  }
  stop = true;
  while (writing.load() > 0) std::this_thread::yield();
  EXPECT_EQ(bench::lock_counts()->locks - before, 0);
  leave = true;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace
}  // namespace quern::replay
