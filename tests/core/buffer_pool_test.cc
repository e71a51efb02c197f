#include "core/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/error.h"

namespace quern {
namespace {

TEST(BufferPool, SizeClassesArePowersOfTwoAndThenExact) {
  for (const auto& [size, floats] : std::vector<std::pair<size_t, size_t>>{{0, 64},
                                                                           {1, 64},
                                                                           {64, 64},
                                                                           {65, 128},
                                                                           {128, 128},
                                                                           {129, 256},
                                                                           {32769, 65536},
                                                                           {65536, 65536},
                                                                           {65537, 65537},
                                                                           {1000000, 1000000}}) {
    EXPECT_EQ(BufferPool::size_class(size), floats) << size;
  }
}

TEST(BufferPool, ReturnedBufferIsReusedWithinItsSizeClass) {
  BufferPool pool;
  const float* first = nullptr;
  {
    PooledBuffer buffer = pool.rent(100);
    EXPECT_EQ(buffer.size(), 100u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u);
    first = buffer.data();
  }
  EXPECT_NE(pool.rent(129).data(), first);
  EXPECT_NE(pool.rent(64).data(), first);
  EXPECT_EQ(pool.rent(65).data(), first);
  EXPECT_EQ(pool.rent(128).data(), first);
}

TEST(BufferPool, LargeBuffersAreReusedForTheirExactSize) {
  BufferPool pool;
  const float* first = pool.rent(70000).data();  // returned at once
  EXPECT_NE(pool.rent(69999).data(), first);
  EXPECT_EQ(pool.rent(70000).data(), first);
  EXPECT_EQ(pool.statistics().hits, 1u);
}

TEST(BufferPool, ClearsOnRequest) {
  BufferPool pool;
  for (const size_t size : {size_t{1}, size_t{100}, size_t{65536}, size_t{600000}}) {
    for (int round = 0; round < 2; ++round) {  // new, then recycled
      PooledBuffer buffer = pool.rent(size, Fill::kZero);
      EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(), [](float x) { return x == 0.0f; })) << size;
      std::fill(buffer.span().begin(), buffer.span().end(), 7.0f);
    }
  }
  EXPECT_EQ(pool.statistics().hits, 4u);
}

TEST(BufferPool, StatisticsMatchEveryOperation) {
  BufferPool pool;
  PooledBuffer small = pool.rent(65);      // 512 bytes
  PooledBuffer large = pool.rent(100000);  // 400,000 bytes
  BufferPool::Statistics now = pool.statistics();
  EXPECT_EQ(now.rents, 2u);
  EXPECT_EQ(now.hits, 0u);
  EXPECT_EQ(now.misses, 2u);
  EXPECT_EQ(now.returned, 0u);
  EXPECT_EQ(now.outstanding, 2u);
  EXPECT_EQ(now.bytes_held, 0u);
  EXPECT_EQ(now.bytes_rented, 400512u);
  EXPECT_EQ(now.peak_bytes, 400512u);

  large.give_back();
  large.give_back();
  EXPECT_EQ(large.size(), 0u);
  now = pool.statistics();
  EXPECT_EQ(now.returned, 1u);
  EXPECT_EQ(now.outstanding, 1u);
  EXPECT_EQ(now.bytes_held, 400000u);
  EXPECT_EQ(now.bytes_rented, 512u);

  PooledBuffer again = pool.rent(100000);
  now = pool.statistics();
  EXPECT_EQ(now.rents, 3u);
  EXPECT_EQ(now.hits, 1u);
  EXPECT_EQ(now.misses, 2u);
  EXPECT_EQ(now.bytes_held, 0u);
  EXPECT_EQ(now.bytes_rented, 400512u);
  EXPECT_EQ(now.peak_bytes, 400512u);

  again.give_back();
  small.give_back();
  EXPECT_EQ(pool.trim(), 400512u);
  now = pool.statistics();
  EXPECT_EQ(now.outstanding, 0u);
  EXPECT_EQ(now.bytes_held, 0u);
  EXPECT_EQ(now.bytes_rented, 0u);
  EXPECT_EQ(now.peak_bytes, 400512u);
  EXPECT_EQ(pool.trim(), 0u);
}

TEST(BufferPool, TrimLeavesRentedBuffersAlone) {
  BufferPool pool;
  std::vector<PooledBuffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back(pool.rent(64, Fill::kZero));
  for (size_t i = 0; i < 5; ++i) buffers[i].give_back();
  EXPECT_EQ(pool.trim(), 5u * 256u);
  EXPECT_EQ(buffers[7].span()[63], 0.0f);
  buffers.clear();
  EXPECT_EQ(pool.statistics().bytes_held, 5u * 256u);
  EXPECT_EQ(pool.statistics().outstanding, 0u);
}

TEST(BufferPool, MovedBufferIsReturnedOnce) {
  BufferPool pool;
  PooledBuffer first = pool.rent(64);
  PooledBuffer second(std::move(first));
  PooledBuffer third = pool.rent(64);
  third = std::move(second);  // returns what third had
  EXPECT_EQ(pool.statistics().returned, 1u);
  EXPECT_EQ(pool.statistics().outstanding, 1u);
  third.give_back();
  EXPECT_EQ(pool.statistics().returned, 2u);
  EXPECT_EQ(pool.statistics().outstanding, 0u);
}

TEST(BufferPool, FailedRentIsNotCounted) {
  BufferPool pool;
  EXPECT_THROW(pool.rent(size_t{1} << 60), Error);
  EXPECT_THROW(pool.rent(~size_t{0}), Error);
  EXPECT_EQ(pool.statistics().rents, 0u);
  EXPECT_EQ(pool.statistics().peak_bytes, 0u);
}

// No buffer is in two hands at once, and the statistics are right at every moment and at the end.
TEST(BufferPool, ManyThreadsRentAndReturn) {
  BufferPool pool;
  constexpr size_t kThreads = 8, kRounds = 2000;
  std::atomic<size_t> torn{0}, inconsistent{0};
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        PooledBuffer kept;
        for (size_t round = 0; round < kRounds; ++round) {
          PooledBuffer buffer = pool.rent(1 + (round * 37 + t) % 300);
          const auto mark = static_cast<float>(t * kRounds + round);
          std::fill(buffer.span().begin(), buffer.span().end(), mark);
          const BufferPool::Statistics now = pool.statistics();
          if (now.rents != now.hits + now.misses || now.outstanding != now.rents - now.returned) ++inconsistent;
          if (now.bytes_held + now.bytes_rented > now.peak_bytes) ++inconsistent;
          if (!std::all_of(buffer.span().begin(), buffer.span().end(), [&](float x) { return x == mark; })) ++torn;
          if (round % 3 == 0) kept = std::move(buffer);
          if (round % 100 == 50) pool.trim();
        }
      });
    }
  }
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(inconsistent, 0u);
  const BufferPool::Statistics end = pool.statistics();
  EXPECT_EQ(end.rents, kThreads * kRounds);
  EXPECT_EQ(end.returned, kThreads * kRounds);
  EXPECT_EQ(end.outstanding, 0u);
  EXPECT_EQ(end.bytes_rented, 0u);
  EXPECT_EQ(pool.trim(), end.bytes_held);
}

}  // namespace
}  // namespace quern
