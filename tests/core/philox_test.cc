#include "core/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace quern {
namespace {

// The known answers that Random123 publishes for philox4x32 with 10 rounds (its file kat_vectors).
TEST(Philox, MatchesThePublishedVectors) {
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  // Counter and key are the digits of pi.
  EXPECT_EQ(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
            (PhiloxBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, IsEvaluatedByTheCompilerToo) { static_assert(philox({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5u); }

TEST(RandomStream, BlockIsPhiloxOfItsFields) {
  constexpr RandomStream stream{.seed = 0x299f31d0a4093822u,
                                .purpose = Purpose{0x0370},
                                .layer = 0x7344,
                                .step = 0x13198a2eu,
                                .sequence = 0x85a308d3u};
  EXPECT_EQ(stream.block(0x243f6a88u), (PhiloxBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

// A change of any one part of the name changes the input of philox, which is a bijection of the counter under one key.
TEST(RandomStream, OneDifferentFieldGivesAnotherStream) {
  const RandomStream base{.seed = 7, .purpose = Purpose::kShuffle, .layer = 3, .step = 11, .sequence = 5};
  std::vector<RandomStream> streams(8, base);
  streams[1].seed = 8;
  streams[2].seed = base.seed | uint64_t{1} << 32;
  streams[3].purpose = Purpose::kSample;
  streams[4].layer = 4;
  streams[5].step = 12;
  streams[6].sequence = 6;
  streams[7].sequence = base.step, streams[7].step = base.sequence;
  std::set<PhiloxBlock> blocks;
  for (const RandomStream& stream : streams) {
    for (uint32_t block = 0; block < 1000; ++block) blocks.insert(stream.block(block));
  }
  EXPECT_EQ(blocks.size(), 8u * 1000u);
}

TEST(RandomStream, IsUniform) {
  const RandomStream stream{.seed = 1, .purpose = Purpose::kAttentionDropout};
  constexpr uint32_t kBlocks = 100000;
  std::array<uint32_t, 32> ones{};
  for (uint32_t block = 0; block < kBlocks; ++block) {
    for (const uint32_t word : stream.block(block)) {
      for (size_t bit = 0; bit < ones.size(); ++bit) ones[bit] += word >> bit & 1;
    }
  }
  // 400,000 tosses of a coin per bit: a deviation of 316, so 5 of them is 1,581.
  for (const uint32_t count : ones) EXPECT_NEAR(count, 2 * kBlocks, 1581);
}

}  // namespace
}  // namespace quern
