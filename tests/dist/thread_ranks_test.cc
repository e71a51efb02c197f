#include "dist/thread_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "support/watchdog.h"

namespace quern::dist {
namespace {

std::span<const std::byte> bytes(const std::vector<uint32_t>& values) { return std::as_bytes(std::span(values)); }
std::span<std::byte> bytes(std::vector<uint32_t>& values) { return std::as_writable_bytes(std::span(values)); }

// Calls f on every rank, each on its own thread.
template <typename F>
void on_all(ThreadRanks& ranks, size_t count, F f) {
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < count; ++rank) threads.emplace_back([&, rank] { f(ranks[rank]); });
}

// Everyone sends several messages with several tags to everyone, and receives them in another order of tags.
TEST(ThreadRanks, MessagesArriveByTagInOrder) {
  const test::Watchdog watchdog("messages");
  constexpr size_t kRanks = 5, kTags = 4, kMessages = 50;
  ThreadRanks ranks(kRanks);
  on_all(ranks, kRanks, [&](Communicator& c) {
    std::vector<std::vector<uint32_t>> sent;
    std::vector<Communicator::Request> sends;
    sent.reserve(kRanks * kTags * kMessages);
    for (uint32_t i = 0; i < kMessages; ++i) {
      for (uint32_t to = 0; to < kRanks; ++to) {
        for (uint32_t tag = 0; tag < kTags; ++tag) {
          sent.push_back({static_cast<uint32_t>(c.rank()), to, tag, i});
          sends.push_back(c.send(to, tag, bytes(std::as_const(sent.back()))));
        }
      }
    }
    for (uint32_t tag = kTags; tag-- > 0;) {
      for (uint32_t i = 0; i < kMessages; ++i) {
        for (uint32_t from = 0; from < kRanks; ++from) {
          std::vector<uint32_t> found(4);
          wait(c, c.receive(from, tag, bytes(found)));
          ASSERT_EQ(found, (std::vector<uint32_t>{from, static_cast<uint32_t>(c.rank()), tag, i}));
        }
      }
    }
    for (const Communicator::Request request : sends) wait(c, request);
  });
}

// However often and in whatever order they are asked.
TEST(ThreadRanks, ReceivesGetTheirMessagesInTheOrderTheyWerePosted) {
  const test::Watchdog watchdog("posted");
  constexpr uint32_t kMessages = 2000;
  ThreadRanks ranks(2);
  on_all(ranks, 2, [&](Communicator& c) {
    std::vector<std::vector<uint32_t>> values(kMessages, std::vector<uint32_t>(1));
    std::vector<Communicator::Request> requests;
    for (uint32_t i = 0; i < kMessages; ++i) {
      if (c.rank() == 0) values[i][0] = i;
      requests.push_back(c.rank() == 0 ? c.send(1, 0, bytes(std::as_const(values[i])))
                                       : c.receive(0, 0, bytes(values[i])));
      if (c.rank() == 1) continue;
      if (i % 10 == 0) std::this_thread::yield();
    }
    std::vector<bool> done(kMessages);
    for (size_t left = kMessages; left > 0;) {
      for (size_t i = kMessages; i-- > 0;) {
        if (done[i] || !c.done(requests[i])) continue;
        done[i] = true;
        --left;
      }
    }
    for (uint32_t i = 0; i < kMessages; ++i) ASSERT_EQ(values[i][0], i);
  });
}

TEST(ThreadRanks, AllGatherGivesEveryoneEverything) {
  const test::Watchdog watchdog("gather");
  for (const size_t count : {1, 2, 3, 8, 64}) {
    ThreadRanks ranks(count);
    on_all(ranks, count, [&](Communicator& c) {
      for (uint32_t round = 0; round < 20; ++round) {
        std::vector<uint32_t> all(3 * count);
        const auto share = [](size_t rank)  // 0 to 3 numbers
        {
          return Range{12 * rank, 12 * rank + 4 * (rank % 4)};
        };
        for (size_t i = 0; i < c.rank() % 4; ++i)
          all[3 * c.rank() + i] = static_cast<uint32_t>(100 * c.rank() + i + round);
        all_gather(c, round % 2, bytes(all), share);
        for (size_t rank = 0; rank < count; ++rank) {
          for (size_t i = 0; i < rank % 4; ++i) ASSERT_EQ(all[3 * rank + i], 100 * rank + i + round);
        }
      }
    });
  }
}

TEST(ThreadRanks, AnAbortEndsEveryWait) {
  const test::Watchdog watchdog("abort");
  ThreadRanks ranks(3);
  on_all(ranks, 3, [&](Communicator& c) {
    std::vector<uint32_t> never(1);
    if (c.rank() == 1) return c.abort();
    EXPECT_THROW(wait(c, c.receive(1, 7, bytes(never))), Error);
  });
}

}  // namespace
}  // namespace quern::dist
