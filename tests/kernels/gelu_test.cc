#include "kernels/gelu.h"

#include <limits>
#include <numbers>

#include "kernels/convert.h"
#include "support/support.h"
#include "support/twin.h"

namespace quern::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }

// -12 to 12 in steps that are not exact in binary, and what lies far outside.
std::vector<float> interesting() {
  std::vector<float> values;
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<float>(i) * 0.003f);
  for (const float huge : {9.98f, 9.99f, 10.1f, 14.0f, 100.0f, 1e10f, 1e19f, 1e30f, 3.4e38f, kInfinity}) {
    values.push_back(huge);
    values.push_back(-huge);
  }
  for (const float tiny : {0.0f, -0.0f, 1e-38f, -1e-38f, 1e-45f, -1e-45f, 1e-20f}) values.push_back(tiny);
  return values;
}

std::vector<float> forward(const std::vector<float>& x, size_t offset = 0) {
  test::Placed in(x, offset), out(x.size(), -7.0f, offset / 2);
  gelu_forward(in.data(), out.data(), x.size());
  return out.copy();
}

std::vector<float> backward(const std::vector<float>& x, const std::vector<float>& dout, size_t offset = 0) {
  test::Placed in(x, offset), gradient(dout, offset / 2), out(x.size(), -7.0f, offset / 3);
  gelu_backward(in.data(), gradient.data(), out.data(), x.size());
  return out.copy();
}

TEST(Gelu, ForwardMatchesTwins) {
  const std::vector<float> x = interesting();
  std::vector<float> exact;
  for (const float value : x) exact.push_back(twin::gelu(value));
  test::for_each_target([&](const Target& target) {
    const std::vector<float> out = forward(x, 1);
    if (target.fma) {
      EXPECT_TRUE(test::same_bits(exact, out));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isinf(x[i])) continue;
      EXPECT_NEAR(out[i], gelu(static_cast<double>(x[i])), 3e-7 * std::max(1.0f, std::abs(x[i]))) << "x = " << x[i];
    }
  });
}

TEST(Gelu, EverySizeAndAlignment) {
  test::for_each_target([&](const Target& target) {
    for (const size_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 127, 128, 129}) {
      const std::vector<float> x = test::normal(n, 1, 3.0f), dout = test::normal(n, 2);
      std::vector<float> out, dx;
      for (size_t i = 0; i < n; ++i) {
        out.push_back(twin::gelu(x[i]));
        dx.push_back(dout[i] * twin::gelu_derivative(x[i]));
      }
      for (const size_t offset : {0, 1, 5, 15}) {
        EXPECT_TRUE(target.fma ? test::same_bits(out, forward(x, offset)) : test::close(out, forward(x, offset), 1e-6))
            << "n = " << n << ", offset " << offset;
        const std::vector<float> found = backward(x, dout, offset);
        EXPECT_TRUE(target.fma ? test::same_bits(dx, found) : test::close(dx, found, 1e-6))
            << "backward, n = " << n << ", offset " << offset;
      }
    }
  });
}

TEST(Gelu, HugeInputsSaturate) {
  test::for_each_target([&](const Target&) {
    for (const float huge : {20.0f, 1e4f, 1e19f, 1e30f, 3.4e38f, kInfinity}) {
      const std::vector<float> out = forward({huge, -huge});
      EXPECT_EQ(out[0], huge);
      EXPECT_NEAR(out[1], 0.0f, 2e-37f) << "x = " << -huge;
      const std::vector<float> dx = backward({huge, -huge}, {2.0f, 2.0f});
      EXPECT_EQ(dx[0], 2.0f) << "x = " << huge;
      EXPECT_NEAR(dx[1], 0.0f, 1e-34f) << "x = " << -huge;
    }
  });
}

TEST(Gelu, NanPropagates) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  test::for_each_target([&](const Target&) {
    for (const size_t n : {1, 16, 17}) {
      std::vector<float> x(n, 1.0f);
      x.back() = nan;
      const std::vector<float> ones(n, 1.0f);
      EXPECT_TRUE(std::isnan(forward(x).back()));
      EXPECT_TRUE(std::isnan(backward(x, ones).back()));
      EXPECT_TRUE(std::isnan(backward(ones, x).back()));
      EXPECT_EQ(std::isnan(forward(x).front()), n == 1);
    }
  });
}

TEST(Gelu, BackwardMatchesTwinAndFiniteDifferences) {
  const std::vector<float> x = interesting();
  const std::vector<float> dout = test::normal(x.size(), 3);
  std::vector<float> exact;
  for (size_t i = 0; i < x.size(); ++i) exact.push_back(dout[i] * twin::gelu_derivative(x[i]));
  test::for_each_target([&](const Target& target) {
    const std::vector<float> dx = backward(x, dout, 3);
    if (target.fma) {
      EXPECT_TRUE(test::same_bits(exact, dx));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::abs(x[i]) > 1e4f) continue;
      double at = static_cast<double>(x[i]);
      const double slope = test::derivative([&] { return gelu(at); }, at);
      EXPECT_NEAR(dx[i], static_cast<double>(dout[i]) * slope, 3e-6) << "x = " << x[i];
    }
  });
}

// The input rounded to `type` and back, by both kernels on their own and by the one that does both.
void expect_both(const std::vector<float>& input, DType type, size_t offset) {
  const size_t n = input.size();
  std::vector<float> x = input;
  std::vector<Half> halves(n + offset);
  Half* const stored = halves.data() + offset;
  if (type != DType::kF32) narrow(type, input.data(), stored, n), widen(type, stored, x.data(), n);
  const std::vector<float> dout = test::normal(n, 6);
  test::Placed floats(x, offset), gradient(dout, offset / 2), out(n, -7.0f, offset / 3);
  gelu_forward_backward(type == DType::kF32 ? static_cast<const void*>(floats.data()) : stored, type, gradient.data(),
                        out.data(), n);
  EXPECT_TRUE(test::same_bits(forward(x), out.span())) << "n = " << n << ", offset " << offset;
  EXPECT_TRUE(test::same_bits(backward(x, dout), gradient.span())) << "n = " << n << ", offset " << offset;
}

TEST(Gelu, FusedForwardAndDerivativeMatchEachBitForBit) {
  test::for_each_target([&](const Target&) {
    for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
      expect_both(interesting(), type, 1);
      for (const size_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 100, 127, 128, 129}) {
        for (const size_t offset : {0, 5}) expect_both(test::normal(n, 1, 3.0f), type, offset);
      }
    }
  });
}

TEST(Gelu, FusedForwardAndDerivativePropagateNan) {
  const std::vector<float> x(33, std::numeric_limits<float>::quiet_NaN());
  test::for_each_target([&](const Target&) {
    std::vector<float> gradient(33, 1.0f), out(33);
    gelu_forward_backward(x.data(), DType::kF32, gradient.data(), out.data(), 33);
    for (size_t i = 0; i < 33; ++i) EXPECT_TRUE(std::isnan(out[i]) && std::isnan(gradient[i])) << i;
  });
}

TEST(Gelu, InPlace) {
  const std::vector<float> x = test::normal(37, 4), dout = test::normal(37, 5);
  test::for_each_target([&](const Target&) {
    test::Placed values(x, 2), gradient(dout, 2);
    gelu_backward(values.data(), gradient.data(), gradient.data(), x.size());
    gelu_forward(values.data(), values.data(), x.size());
    EXPECT_TRUE(test::same_bits(forward(x), values.span()));
    EXPECT_TRUE(test::same_bits(backward(x, dout), gradient.span()));
  });
}

}  // namespace
}  // namespace quern::kernels
