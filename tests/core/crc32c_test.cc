#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace quern
