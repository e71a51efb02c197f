#include "formats/rope_factors.h"

#include <gtest/gtest.h>

namespace quern::formats {
namespace {

// Llama 3.2 1B: heads of 64, theta 500000, factor 32. The values are those of transformers 5.23.0: the frequencies
// without and with scaling, divided.
TEST(RopeFactors, OfLlama32) {
  const nn::RotaryConfig rotary{.base = 500000, .scaling = nn::RotaryScaling::kLlama3, .factor = 32};
  const std::vector<float> factors = rope_factors(rotary, 64);
  ASSERT_EQ(factors.size(), 32u);
  EXPECT_EQ(factors[0], 1.0f);
  EXPECT_EQ(factors[14], 1.0f);
  EXPECT_NEAR(factors[15], 1.65133, 1e-4);
  EXPECT_NEAR(factors[16], 3.29226, 1e-4);
  EXPECT_NEAR(factors[17], 9.66673, 1e-4);
  EXPECT_EQ(factors[18], 32.0f);
  EXPECT_EQ(factors[31], 32.0f);
  EXPECT_EQ(rotary_from_factors(500000, factors), rotary);
}

TEST(RopeFactors, OtherSettingsAreFoundUpToAnEquivalent) {
  for (const size_t context : {64u, 3000u, 8192u, 100000u}) {
    const nn::RotaryConfig rotary{.base = 10000,
                                  .scaling = nn::RotaryScaling::kLlama3,
                                  .factor = 8,
                                  .low_frequency = 1.5,
                                  .high_frequency = 7,
                                  .original_context = context};
    const std::vector<float> factors = rope_factors(rotary, 128);
    const auto found = rotary_from_factors(10000, factors);
    ASSERT_TRUE(found) << context;
    const std::vector<float> again = rope_factors(*found, 128);
    for (size_t j = 0; j < factors.size(); ++j) ASSERT_NEAR(again[j] / factors[j], 1.0f, 1e-5f) << context << " " << j;
  }
}

TEST(RopeFactors, FactorsOfAnotherKindAreNotRecognized) {
  std::vector<float> factors(32, 1.0f);
  EXPECT_FALSE(rotary_from_factors(10000, factors));
  for (size_t j = 0; j < factors.size(); ++j) factors[j] = 1.0f + static_cast<float>(j);
  EXPECT_FALSE(rotary_from_factors(10000, factors));
  EXPECT_FALSE(rotary_from_factors(10000, {}));
}

}  // namespace
}  // namespace quern::formats
