#include "formats/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/support.h"

namespace quern::formats {
namespace {

std::vector<std::byte> encoded(GgmlType type, std::span<const float> values) {
  std::vector<std::byte> bytes(encoded_bytes(type, values.size()));
  encode(type, values, bytes);
  return bytes;
}

std::vector<float> decoded(GgmlType type, std::span<const std::byte> bytes, size_t count) {
  std::vector<float> values(count);
  decode(type, bytes, values);
  return values;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

TEST(Blocks, Float32IsCopied) {
  const std::vector<float> values = test::normal(67, 1);
  EXPECT_TRUE(test::same_bits(values, decoded(GgmlType::kF32, encoded(GgmlType::kF32, values), 67)));
}

TEST(Blocks, HalvesComeBackWithTheirBits) {
  for (const GgmlType type : {GgmlType::kF16, GgmlType::kBF16}) {
    std::vector<std::byte> all(2 * 65536);
    for (size_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      std::memcpy(all.data() + 2 * i, &bits, 2);
    }
    const std::vector<float> values = decoded(type, all, 65536);
    const std::vector<std::byte> again = encoded(type, values);
    for (size_t i = 0; i < 65536; ++i) {
      if (std::isnan(values[i])) continue;
      ASSERT_EQ(std::memcmp(all.data() + 2 * i, again.data() + 2 * i, 2), 0) << i;
    }
  }
}

TEST(Blocks, SpansNeedNoAlignment) {
  const std::vector<float> values = test::normal(64, 2);
  for (const GgmlType type : {GgmlType::kF32, GgmlType::kF16, GgmlType::kBF16, GgmlType::kQ8_0}) {
    const std::vector<std::byte> bytes = encoded(type, values);
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
    EXPECT_TRUE(test::same_bits(decoded(type, bytes, 64), decoded(type, std::span(shifted).subspan(1), 64)));
  }
}

// d = 127 / 127 = 1, 0x3c00 in f16; halves round away from zero.
TEST(Blocks, Q8_0RoundsHalvesAwayFromZero) {
  std::vector<float> values(32, 0.0f);
  values[0] = 127;
  values[1] = 0.5f;
  values[2] = -0.5f;
  values[3] = 2.5f;
  values[4] = -126.5f;
  values[5] = 0.49999997f;
  const std::vector<std::byte> bytes = encoded(GgmlType::kQ8_0, values);
  const std::vector<std::byte> expected = bytes_of({0x00, 0x3c, 127, 1, -1, 3, -127, 0});
  EXPECT_EQ(std::vector(bytes.begin(), bytes.begin() + 8), expected);
}

// The divisor is d in fp32, not the f16 that is stored: with max 1, d = 1/127 = 0.007874016, and f16 has 0.007873535.
TEST(Blocks, Q8_0DividesByTheUnroundedScale) {
  std::vector<float> values(32, 0.0f);
  values[0] = 1.0f;
  values[1] = 100.499f / 127;  // 100.499 d: 100; with the stored d it would be 100.505: 101
  const std::vector<std::byte> bytes = encoded(GgmlType::kQ8_0, values);
  EXPECT_EQ(bytes[3], std::byte{100});
  const std::vector<float> back = decoded(GgmlType::kQ8_0, bytes, 32);
  EXPECT_FLOAT_EQ(back[0], 127 * 0.0078735352f);
}

TEST(Blocks, Q8_0OfSpecialValues) {
  std::vector<float> values(32, 0.0f);
  EXPECT_EQ(encoded(GgmlType::kQ8_0, values), std::vector<std::byte>(34));
  values[3] = std::numeric_limits<float>::denorm_min();
  values[4] = std::numeric_limits<float>::quiet_NaN();
  encoded(GgmlType::kQ8_0, values);  // no undefined conversion
  values[5] = std::numeric_limits<float>::infinity();
  encoded(GgmlType::kQ8_0, values);
}

TEST(Blocks, Q4HasTheLowNibblesFirst) {
  std::vector<std::byte> bytes = bytes_of({0x00, 0x40});  // d = 2
  for (int i = 0; i < 16; ++i) bytes.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  std::vector<float> values = decoded(GgmlType::kQ4_0, bytes, 32);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[static_cast<size_t>(i)], 2.0f * static_cast<float>(i - 8));
    EXPECT_EQ(values[static_cast<size_t>(i + 16)], 2.0f * static_cast<float>(15 - i - 8));
  }
  const std::vector<std::byte> minimum = bytes_of({0x00, 0xbc});  // m = -1
  bytes.insert(bytes.begin() + 2, minimum.begin(), minimum.end());
  values = decoded(GgmlType::kQ4_1, bytes, 32);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[static_cast<size_t>(i)], 2.0f * static_cast<float>(i) - 1);
    EXPECT_EQ(values[static_cast<size_t>(i + 16)], 2.0f * static_cast<float>(15 - i) - 1);
  }
}

}  // namespace
}  // namespace quern::formats
