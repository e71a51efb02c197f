#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern {
namespace {

// The check value of the catalogue of CRCs, and the vectors of RFC 3720, B.4.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending += i;
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
}

// Around the lengths at which the fast one changes its ways (8, 3 * 256, 3 * 4096) and at every alignment; each copy
// ends exactly where its memory does.
TEST(Crc32c, MatchesTheTableImplementation) {
  std::mt19937 random(1);
  std::string all(40'000, ' ');
  for (char& byte : all) byte = static_cast<char>(random());
  std::vector<size_t> lengths = {0, 767, 768, 769, 776, 1535, 1536, 12'287, 12'288, 12'289, 13'056, 24'576, 39'000};
  for (size_t length = 1; length < 40; ++length) lengths.push_back(length);
  for (const size_t length : lengths) {
    for (size_t start = 0; start < 9; ++start) {
      const std::vector<char> exact(all.begin() + static_cast<long>(start),
                                    all.begin() + static_cast<long>(start + length));
      const std::string_view text(exact.data(), exact.size());
      ASSERT_EQ(crc32c(text), crc32c_by_table(text)) << length << " from " << start;
      ASSERT_EQ(crc32c(std::string_view(all).substr(start, length)), crc32c_by_table(text));
      ASSERT_EQ(crc32c(std::as_bytes(std::span(exact))), crc32c_by_table(text));
    }
  }
}

}  // namespace
}  // namespace quern
