#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/half.h"
#include "support/support.h"

namespace quern::kernels {
namespace {

struct Parameter {
  float p, m, v;
};

// The order of operations in adamw.h, one element, with std::fma.
Parameter twin_adamw(const AdamW& o, Parameter x, float gradient) {
  const auto rest = [](float beta) { return static_cast<float>(1.0 - static_cast<double>(beta)); };
  const auto correction = [&](float beta) {
    return static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(beta), static_cast<double>(o.step))));
  };
  const float g = gradient * o.gradient_scale;
  const float m = std::fma(o.beta1, x.m, rest(o.beta1) * g);
  const float v = std::fma(o.beta2, x.v, rest(o.beta2) * g * g);
  const float direction = m * correction(o.beta1) / (std::sqrt(v * correction(o.beta2)) + o.epsilon);
  return {std::fma(-o.rate, std::fma(o.weight_decay, x.p, direction), x.p), m, v};
}

// The formula as published, in double precision.
struct Reference {
  double p, m = 0, v = 0;

  void step(const AdamW& o, float gradient) {
    const double g = static_cast<double>(gradient) * static_cast<double>(o.gradient_scale);
    const double beta1 = o.beta1, beta2 = o.beta2, t = static_cast<double>(o.step);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    const double epsilon = o.epsilon, decay = o.weight_decay, rate = o.rate;
    p -= rate * (m_hat / (std::sqrt(v_hat) + epsilon) + decay * p);
  }
};

const std::vector<size_t> kSizes = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 100, 127, 128, 129, 1001};
const std::vector<AdamW> kOptions = {
    {},
    {.rate = 1e-2f, .beta2 = 0.999f, .gradient_scale = 1.0f / 65536, .step = 7},
    {.rate = 1.0f, .beta1 = 0.0f, .beta2 = 0.0f, .epsilon = 1.0f, .weight_decay = 0.0f, .step = 1},
    {.epsilon = 1e-3f, .gradient_scale = 0.37f, .step = 1'000'000},
};

// The state of n parameters, misaligned, each array in its own way.
struct State {
  State(size_t n, size_t offset)
      : p(test::normal(n, 1), offset % 16),
        gradient(test::normal(n, 2, 0.1f), (offset + 3) % 16),
        m(test::normal(n, 3, 0.01f), (offset + 6) % 16),
        v(squares(n), (offset + 11) % 16) {}

  static std::vector<float> squares(size_t n) {
    std::vector<float> values = test::normal(n, 4, 0.1f);
    for (float& value : values) value *= value;
    return values;
  }
  test::Placed p, gradient, m, v;
};

TEST(AdamW, MatchesItsTwinBitForBit) {
  test::for_each_target([&](const Target& target) {
    for (const AdamW& options : kOptions) {
      for (const size_t n : kSizes) {
        State s(n, n);
        std::vector<float> p(n), m(n), v(n);
        for (size_t i = 0; i < n; ++i) {
          const Parameter x = twin_adamw(options, {s.p[i], s.m[i], s.v[i]}, s.gradient[i]);
          p[i] = x.p, m[i] = x.m, v[i] = x.v;
        }
        adamw(options, s.p.data(), s.gradient.data(), s.m.data(), s.v.data(), n);
        EXPECT_TRUE(test::close(p, s.p.span(), 1e-6)) << "n " << n;
        EXPECT_TRUE(test::close(m, s.m.span(), 1e-6)) << "n " << n;
        EXPECT_TRUE(test::close(v, s.v.span(), 1e-6)) << "n " << n;
        if (!target.fma) continue;
        EXPECT_TRUE(test::same_bits(p, s.p.span())) << "n " << n;
        EXPECT_TRUE(test::same_bits(m, s.m.span())) << "n " << n;
        EXPECT_TRUE(test::same_bits(v, s.v.span())) << "n " << n;
      }
    }
  });
}

TEST(AdamW, FollowsTheFormulaInDoublePrecisionForManySteps) {
  constexpr size_t n = 37;
  test::for_each_target([&](const Target&) {
    std::vector<float> p = test::normal(n, 1), m(n), v(n);
    std::vector<Reference> expected(n);
    for (size_t i = 0; i < n; ++i) expected[i].p = static_cast<double>(p[i]);
    AdamW options = {.rate = 1e-3f, .gradient_scale = 0.5f};
    for (options.step = 1; options.step <= 1000; ++options.step) {
      const std::vector<float> gradient = test::normal(n, static_cast<unsigned>(options.step));
      adamw(options, p.data(), gradient.data(), m.data(), v.data(), n);
      for (size_t i = 0; i < n; ++i) expected[i].step(options, gradient[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(p[i], expected[i].p, 1e-5) << i;  // 1,000 roundings of 6e-8 each, as a random walk: 2e-6
      EXPECT_NEAR(m[i], expected[i].m, 1e-6) << i;
      EXPECT_NEAR(v[i], expected[i].v, 1e-6) << i;
    }
  });
}

// sqrt(v_hat) = |g| = m_hat at step 1. With epsilon = |g| outside the root the step is rate / 2; inside the root it
// would be near rate.
TEST(AdamW, EpsilonIsOutsideTheRoot) {
  test::for_each_target([&](const Target&) {
    float p = 1.0f, m = 0.0f, v = 0.0f;
    const float gradient = 1e-4f;
    adamw({.rate = 0.1f, .epsilon = 1e-4f, .weight_decay = 0.0f}, &p, &gradient, &m, &v, 1);
    EXPECT_NEAR(p, 0.95f, 1e-6f);
  });
}

TEST(AdamW, AnySplitIsBitIdentical) {
  constexpr size_t n = 1000;
  test::for_each_target([&](const Target&) {
    State whole(n, 0);
    adamw({}, whole.p.data(), whole.gradient.data(), whole.m.data(), whole.v.data(), n);
    for (const size_t width : {1, 3, 17, 333}) {
      State s(n, width);
      for (size_t i = 0; i < n; i += width) {
        adamw({}, s.p.data() + i, s.gradient.data() + i, s.m.data() + i, s.v.data() + i, std::min(width, n - i));
      }
      EXPECT_TRUE(test::same_bits(whole.p.span(), s.p.span())) << "width " << width;
      EXPECT_TRUE(test::same_bits(whole.m.span(), s.m.span())) << "width " << width;
      EXPECT_TRUE(test::same_bits(whole.v.span(), s.v.span())) << "width " << width;
    }
  });
}

TEST(AdamW, NotFiniteGradientsSpreadToTheirElementOnly) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  test::for_each_target([&](const Target&) {
    State s(40, 0);
    s.gradient[3] = std::numeric_limits<float>::quiet_NaN();
    s.gradient[17] = kInfinity;
    s.gradient[39] = -kInfinity;
    s.gradient[20] = 1e30f;  // its square overflows: v is infinite, so only the weight decay is left
    const float before = s.p[20];
    adamw({}, s.p.data(), s.gradient.data(), s.m.data(), s.v.data(), 40);
    EXPECT_TRUE(std::isnan(s.p[3]) && std::isnan(s.m[3]) && std::isnan(s.v[3]));
    for (const size_t i : {17, 39}) EXPECT_TRUE(std::isnan(s.p[i]) && s.v[i] == kInfinity) << i;
    EXPECT_EQ(s.m[17], kInfinity);
    EXPECT_EQ(s.m[39], -kInfinity);
    EXPECT_EQ(s.v[20], kInfinity);
    EXPECT_NEAR(s.p[20], before * (1 - 3e-5f), 1e-6f);
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(std::isfinite(s.p[i]), i != 3 && i != 17 && i != 39) << i;
    }
  });
}

// A parameter that never had a gradient (a token that does not occur) only decays; 0 / (0 + epsilon) is 0.
TEST(AdamW, ZeroGradientOnlyDecays) {
  test::for_each_target([&](const Target&) {
    std::vector<float> p(21, 2.0f), gradient(21), m(21), v(21);
    adamw({.rate = 0.5f, .weight_decay = 0.5f}, p.data(), gradient.data(), m.data(), v.data(), 21);
    EXPECT_EQ(p, std::vector<float>(21, 1.5f));
    EXPECT_EQ(m, std::vector<float>(21));
    EXPECT_EQ(v, std::vector<float>(21));
  });
}

}  // namespace
}  // namespace quern::kernels
