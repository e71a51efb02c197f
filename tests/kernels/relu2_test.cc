#include "kernels/relu2.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/stored.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr size_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 100, 127, 128, 129};

// -12 to 12 in steps that are not exact in binary, and what lies far outside.
std::vector<float> interesting() {
  std::vector<float> values;
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<float>(i) * 0.003f);
  for (const float far : {100.0f, 1e10f, 1e19f, 1e30f, 3.4e38f, kInfinity, 1e-20f, 1e-38f, 1e-45f, 0.0f}) {
    values.push_back(far);
    values.push_back(-far);
  }
  return values;
}

std::vector<float> forward(const std::vector<float>& x, size_t offset = 0) {
  test::Placed in(x, offset), out(x.size(), -7.0f, offset / 2);
  relu2_forward(in.data(), out.data(), x.size());
  return out.copy();
}

struct Both {
  std::vector<float> out, gradient;
};

Both both(const std::vector<float>& x, DType type, const std::vector<float>& dout, size_t offset = 0) {
  Stored in(type, x, offset);
  test::Placed gradient(dout, offset / 2), out(x.size(), -7.0f, offset / 3);
  relu2_forward_backward(in.at(0), type, gradient.data(), out.data(), x.size());
  return {out.copy(), gradient.copy()};
}

// No operation fuses, so every target gives the bits of the twin.
TEST(Relu2, ForwardMatchesTwins) {
  const std::vector<float> x = interesting();
  std::vector<float> exact;
  for (const float value : x) exact.push_back(twin::relu2(value));
  test::for_each_target([&](const Target&) {
    const std::vector<float> out = forward(x, 1);
    EXPECT_TRUE(test::same_bits(exact, out));
    for (size_t i = 0; i < x.size(); ++i) {
      const double positive = std::max(0.0, static_cast<double>(x[i])), expected = positive * positive;
      if (expected > 3e38) continue;  // infinite in fp32
      EXPECT_NEAR(out[i], expected, 1e-7 * expected + 1e-45) << "x = " << x[i];
    }
  });
}

TEST(Relu2, EverySizeAlignmentAndFormat) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : kSizes) {
      const std::vector<float> x = test::normal(n, 1, 3.0f), dout = test::normal(n, 2);
      for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
        std::vector<float> out, gradient;
        for (size_t i = 0; i < n; ++i) {
          const float value = rounded(type, x[i]);
          out.push_back(twin::relu2(value));
          gradient.push_back(dout[i] * (2 * (value < 0.0f ? 0.0f : value)));
        }
        for (const size_t offset : {0, 1, 5, 15}) {
          const Both found = both(x, type, dout, offset);
          EXPECT_TRUE(test::same_bits(out, found.out)) << "n = " << n << ", offset " << offset;
          EXPECT_TRUE(test::same_bits(gradient, found.gradient)) << "n = " << n << ", offset " << offset;
          if (type == DType::kF32) {
            EXPECT_TRUE(test::same_bits(out, forward(x, offset))) << "n = " << n << ", offset " << offset;
          }
        }
      }
    }
  });
}

TEST(Relu2, GradientMatchesFiniteDifferences) {
  const std::vector<float> x = test::normal(500, 3, 3.0f), dout = test::normal(500, 4);
  test::for_each_target([&](const Target&) {
    const std::vector<float> found = both(x, DType::kF32, dout).gradient;
    for (size_t i = 0; i < x.size(); ++i) {
      double at = static_cast<double>(x[i]);
      const double slope = test::derivative([&] { return at > 0 ? at * at : 0.0; }, at);
      EXPECT_NEAR(found[i], static_cast<double>(dout[i]) * slope, 2e-5) << "x = " << x[i];
    }
  });
}

TEST(Relu2, NanPropagates) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : {1, 16, 17, 33}) {
      std::vector<float> x(n, 1.0f);
      x.back() = kNan;
      const std::vector<float> ones(n, 1.0f);
      EXPECT_TRUE(std::isnan(forward(x).back()));
      EXPECT_EQ(std::isnan(forward(x).front()), n == 1);
      for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
        const Both sick = both(x, type, ones);
        EXPECT_TRUE(std::isnan(sick.out.back()) && std::isnan(sick.gradient.back()));
        EXPECT_TRUE(std::isnan(both(ones, type, x).gradient.back()));
      }
    }
  });
}

TEST(Relu2, InPlace) {
  const std::vector<float> x = test::normal(37, 4);
  test::for_each_target([&](const Target&) {
    test::Placed values(x, 2);
    relu2_forward(values.data(), values.data(), x.size());
    EXPECT_TRUE(test::same_bits(forward(x), values.span()));
  });
}

}  // namespace
}  // namespace quern::kernels
