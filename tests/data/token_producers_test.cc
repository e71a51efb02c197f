#include "data/token_producers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "support/watchdog.h"

namespace quern::data {
namespace {

// Piece n is n % 5 times the number n. Now and then somebody is late.
void produce(uint64_t piece, std::vector<int32_t>& tokens) {
  tokens.assign(piece % 5, static_cast<int32_t>(piece));
  if (piece % 97 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

TEST(TokenProducers, AnyNumberDeliversEveryPieceInOrder) {
  const test::Watchdog watchdog("producers");
  for (const size_t threads : {1, 2, 3, 8}) {
    TokenProducers producers(threads, 1000, produce);
    std::vector<int32_t> expected;
    for (uint64_t piece = 1000; piece < 3000; ++piece) {
      const std::span<const int32_t> found = producers.next();
      produce(piece, expected);
      ASSERT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end())) << piece;
    }
  }
}

TEST(TokenProducers, ReadAheadAsFarAsTheyHaveSlots) {
  const test::Watchdog watchdog("ahead");
  std::atomic<size_t> made{0};
  TokenProducers producers(3, 0, [&](uint64_t, std::vector<int32_t>&) { ++made; });
  while (made < 8) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(made, 8u);
  producers.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(made, 8u);  // what was taken is still in use
  producers.next();
  while (made < 9) std::this_thread::yield();
}

// At that piece, not before.
TEST(TokenProducers, ExceptionArrivesInOrder) {
  const test::Watchdog watchdog("exception");
  TokenProducers producers(4, 0, [](uint64_t piece, std::vector<int32_t>& tokens) {
    if (piece % 3 == 2) throw std::runtime_error("bad piece");
    tokens.assign(1, static_cast<int32_t>(piece));
  });
  for (int32_t piece = 0; piece < 60; ++piece) {
    if (piece % 3 == 2) {
      EXPECT_THROW(producers.next(), std::runtime_error) << piece;
    } else {
      EXPECT_EQ(producers.next()[0], piece);
    }
  }
}

// Full and asleep, at work, or not yet begun.
TEST(TokenProducers, CanBeDestroyedAtAnyMoment) {
  const test::Watchdog watchdog("end");
  for (int i = 0; i < 100; ++i) {
    TokenProducers producers(1 + i % 4, 0, produce);
    for (int taken = 0; taken < i % 7; ++taken) producers.next();
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace
}  // namespace quern::data
