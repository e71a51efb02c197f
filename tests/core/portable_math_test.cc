#include "core/portable_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace quern {
namespace {

TEST(PortableMath, AgreesWithTheCLibrary) {
  for (double x = -700; x < 700; x += 0.37) {
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 2e-15) << x;
  }
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-15 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  for (double x = 0.5; x < 2; x += 0.001) EXPECT_NEAR(portable_log(x), std::log(x), 1e-15) << x;
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(-1e9), 0);
  EXPECT_EQ(portable_exp(-INFINITY), 0);
  EXPECT_TRUE(std::isnan(portable_exp(NAN)));
}

}  // namespace
}  // namespace quern
