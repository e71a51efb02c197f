#include "core/byte_size.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(ByteSize, ParsesCommonNotations) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("65536"), 65536u);
  EXPECT_EQ(parse_bytes("512M"), uint64_t{512} << 20);
  EXPECT_EQ(parse_bytes("512m"), uint64_t{512} << 20);
  EXPECT_EQ(parse_bytes("1.5G"), uint64_t{3} << 29);
  EXPECT_EQ(parse_bytes("64 KiB"), uint64_t{64} << 10);
  EXPECT_EQ(parse_bytes("2TB"), uint64_t{2} << 40);
}

TEST(ByteSize, RejectsEverythingElse) {
  for (const char* text : {"", "M", "-1", "1.5.5M", "512X", "512 ", "512MM", "nan", "inf", "1e9", "0x10", " 1",
                           "9999999T", "1 2", "--5M", "1iB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ByteSize, ExactTextRoundTrips) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{1024}, uint64_t{512} << 20,
                               (uint64_t{512} << 20) + 1, uint64_t{3} << 29}) {
    EXPECT_EQ(parse_bytes(exact_bytes(bytes)), bytes);
  }
  EXPECT_EQ(exact_bytes(uint64_t{512} << 20), "512M");
}

TEST(ByteSize, RoundedTextHasThreeDigits) {
  EXPECT_EQ(rounded_bytes(17), "17 B");
  EXPECT_EQ(rounded_bytes(5'463'000), "5.21 MiB");
  EXPECT_EQ(rounded_bytes(uint64_t{87} << 20), "87.0 MiB");
  EXPECT_EQ(rounded_bytes(uint64_t{512} << 20), "512 MiB");
  EXPECT_EQ(rounded_bytes(uint64_t{1010} << 20), "0.99 GiB");
}

}  // namespace
}  // namespace quern
