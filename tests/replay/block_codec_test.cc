#include "replay/block_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "support/support.h"

namespace quern::replay {
namespace {

using Bytes = std::vector<std::byte>;

// Words of `size` bytes: `ones` and `others` of 1000 are the second value and anything, the rest is the first.
Bytes mostly(size_t size, size_t words, unsigned ones, unsigned others, unsigned seed, uint64_t common = 0,
             uint64_t second = 0x3F800000'3F803C01) {
  std::mt19937 random(seed);
  Bytes bytes(words * size);
  for (size_t i = 0; i < words; ++i) {
    const auto draw = static_cast<unsigned>(random() % 1000);
    uint64_t word = draw < ones ? second : common;
    if (draw >= 1000 - others) word = uint64_t{random()} << 32 | random();
    std::memcpy(bytes.data() + i * size, &word, size);
  }
  return bytes;
}

Bytes packed(const Bytes& raw, size_t word, int acceleration = 1) {
  BlockCodec codec(acceleration);
  Bytes out(BlockCodec::max_packed(raw.size()));
  out.resize(codec.pack(raw, word, out.data()));
  return out;
}

// The packed bytes end exactly where their memory does, and so do the raw ones.
bool unpacks(const Bytes& packed, size_t word, Bytes& raw) {
  const Bytes exact(packed.begin(), packed.end());
  std::span<const std::byte> rest(exact);
  std::span<const std::byte> skipped(exact);
  BlockCodec codec;
  if (!codec.unpack(rest, word, raw)) return false;
  EXPECT_TRUE(BlockCodec::skip(skipped, raw.size()));
  EXPECT_EQ(skipped.size(), rest.size());
  return rest.empty();
}

TEST(BlockCodec, RoundTripsBitForBit) {
  test::for_each_target([](const kernels::Target&) {
    for (const size_t word : {1, 2, 4, 8}) {
      for (const size_t words :
           {size_t{1}, size_t{2}, size_t{63}, size_t{64}, size_t{65}, size_t{1000}, size_t{12'345}}) {
        for (const unsigned ones : {0u, 10u, 400u, 1000u}) {
          for (const unsigned others : {0u, 10u, 300u, 600u, 1000u}) {
            const Bytes raw = mostly(word, words, ones, others, static_cast<unsigned>(words) + others);
            Bytes back(raw.size(), std::byte{0xEE});
            ASSERT_TRUE(unpacks(packed(raw, word), word, back));
            ASSERT_EQ(back, raw) << word << " " << words << " " << ones << " " << others;
          }
        }
      }
    }
  });
}

// The two values need not be 0 and 1.
TEST(BlockCodec, TwoValuesBecomeBits) {
  const uint64_t values[] = {0, 0x3F800000, 0xBF800000, 0x80000000, 0x7FC00001};
  for (const uint64_t common : values) {
    for (const uint64_t second : values) {
      const Bytes raw = mostly(4, 100'000, 300, 0, 1, common, second);
      Bytes back(raw.size());
      const Bytes small = packed(raw, 4);
      EXPECT_LT(small.size(), raw.size() / 30);
      ASSERT_TRUE(unpacks(small, 4, back));
      ASSERT_EQ(back, raw);
    }
  }
}

TEST(BlockCodec, FewOtherValuesCompressWell) {
  EXPECT_LT(packed(mostly(4, 100'000, 0, 10, 1), 4).size(), 100'000 * 4 / 20);
  EXPECT_LT(packed(mostly(8, 100'000, 200, 10, 1), 8).size(), 100'000 * 8 / 20);
  EXPECT_LT(packed(mostly(1, 100'000, 500, 0, 1), 1).size(), 100'000 / 7);
  EXPECT_LE(packed(mostly(4, 100'000, 0, 1000, 1), 4).size(), 100'000 * 4 + 32u);
}

TEST(BlockCodec, TheSameBytesOnEveryTarget) {
  const Bytes raw = mostly(4, 10'000, 300, 30, 7);
  const Bytes expected = packed(raw, 4);
  test::for_each_target([&](const kernels::Target&) { EXPECT_EQ(packed(raw, 4), expected); });
}

TEST(BlockCodec, MoreThanOnePiece) {
  for (const unsigned others : {0u, 1000u}) {
    const size_t words = 2 * BlockCodec::kPiece / 4 + 5;
    const Bytes raw = mostly(4, words, 300, others, 3);
    Bytes back(raw.size());
    ASSERT_TRUE(unpacks(packed(raw, 4, 5), 4, back));
    ASSERT_EQ(back, raw);
  }
}

// Damage that no checksum stands before: it may give other bytes or be noticed, but never leaves the arrays.
TEST(BlockCodec, AnyBytesAreSafe) {
  std::mt19937 random(11);
  BlockCodec codec;
  size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const size_t word = size_t{1} << random() % 4;
    const size_t words = 1 + random() % 300;
    const Bytes raw = mostly(word, words, static_cast<unsigned>(random() % 500), static_cast<unsigned>(random() % 600),
                             static_cast<unsigned>(round));
    Bytes damaged = packed(raw, word);
    for (size_t damages = 1 + random() % 3; damages > 0; --damages) {
      const size_t at = random() % 3 == 0 ? random() % std::min<size_t>(32, damaged.size()) : random() % damaged.size();
      damaged[at] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    const Bytes exact(damaged);
    std::span<const std::byte> rest(exact);
    Bytes back(raw.size());
    refused += codec.unpack(rest, word, back) ? 0 : 1;
  }
  EXPECT_GT(refused, 5000u);
}

}  // namespace
}  // namespace quern::replay
