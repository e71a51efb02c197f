#include "data/token_producers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "support/watchdog.h"

namespace quern::data {
namespace {

// Counts the pieces; it fails in ThreadSanitizer if calls overlap.
TokenProducers::Take counter() {
  return [next = uint64_t{0}](TokenPiece& piece) mutable { piece.index.piece = next++; };
}

// Piece n is n % 5 times the number n. Now and then somebody is late.
void produce(TokenPiece& piece) {
  piece.tokens.assign(piece.index.piece % 5, static_cast<int32_t>(piece.index.piece));
  if (piece.index.piece % 97 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

TEST(TokenProducers, AnyNumberDeliversEveryPieceInOrder) {
  const test::Watchdog watchdog("producers");
  for (const size_t threads : {1, 2, 3, 8}) {
    TokenProducers producers(threads, counter(), produce);
    for (uint64_t piece = 0; piece < 2000; ++piece) {
      const TokenPiece& found = producers.next();
      ASSERT_EQ(found.index.piece, piece);
      ASSERT_EQ(found.tokens, std::vector<int32_t>(piece % 5, static_cast<int32_t>(piece)));
    }
  }
}

TEST(TokenProducers, ReadAheadAsFarAsTheyHaveSlots) {
  const test::Watchdog watchdog("ahead");
  std::atomic<size_t> made{0};
  TokenProducers producers(3, counter(), [&](TokenPiece&) { ++made; });
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
  const auto take = [next = uint64_t{0}](TokenPiece& piece) mutable {
    piece.index.piece = next++;
    if (piece.index.piece % 5 == 3) throw std::runtime_error("cannot be read");
  };
  TokenProducers producers(4, take, [](TokenPiece& piece) {
    if (piece.index.piece % 3 == 2) throw std::runtime_error("bad piece");
    piece.tokens.assign(1, static_cast<int32_t>(piece.index.piece));
  });
  for (int32_t piece = 0; piece < 60; ++piece) {
    if (piece % 3 == 2 || piece % 5 == 3) {
      EXPECT_THROW(producers.next(), std::runtime_error) << piece;
    } else {
      EXPECT_EQ(producers.next().tokens[0], piece);
    }
  }
}

// Full and asleep, at work, or not yet begun.
TEST(TokenProducers, CanBeDestroyedAtAnyMoment) {
  const test::Watchdog watchdog("end");
  for (int i = 0; i < 100; ++i) {
    TokenProducers producers(1 + i % 4, counter(), produce);
    for (int taken = 0; taken < i % 7; ++taken) producers.next();
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace
}  // namespace quern::data
