#include "kernels/muon.h"

#include <cmath>
#include <vector>

#include "support/support.h"

namespace quern::kernels {
namespace {

const std::vector<size_t> kSizes = {0, 1, 3, 7, 8, 15, 16, 17, 33, 100, 129, 1001};

TEST(Muon, MomentumEqualsItsTwin) {
  test::for_each_target([](const Target& target) {
    for (const size_t n : kSizes) {
      const Momentum options{.momentum = 0.9f, .gradient_scale = 0.37f};
      test::Placed m(test::normal(n, 1), n % 16), gradient(test::normal(n, 2), 3), direction(n, 0.0f, 5);
      const std::vector<float> before = test::normal(n, 1);
      momentum(options, m.data(), gradient.data(), direction.data(), n);
      const float rest = static_cast<float>(1.0 - static_cast<double>(options.momentum));
      for (size_t i = 0; i < n; ++i) {
        const float part = rest * (gradient.data()[i] * options.gradient_scale);
        const float next = std::fma(options.momentum, before[i], part);
        const float ahead = std::fma(options.momentum, next, part);
        if (target.fma) {
          ASSERT_EQ(m.data()[i], next) << n << " " << i;
          ASSERT_EQ(direction.data()[i], ahead) << n << " " << i;
        } else {
          ASSERT_NEAR(m.data()[i], next, 1e-6f);
          ASSERT_NEAR(direction.data()[i], ahead, 1e-6f);
        }
      }
    }
  });
}

TEST(Muon, ApplyEqualsItsTwin) {
  test::for_each_target([](const Target& target) {
    for (const size_t n : kSizes) {
      const MatrixUpdate options{.rate = 0.05f, .scale = 1.7f, .weight_decay = 0.2f};
      test::Placed p(test::normal(n, 1), n % 16), direction(test::normal(n, 2), 7);
      const std::vector<float> before = test::normal(n, 1);
      apply_direction(options, p.data(), direction.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const float step = std::fma(options.weight_decay, before[i], options.scale * direction.data()[i]);
        const float expected = std::fma(-options.rate, step, before[i]);
        if (target.fma) {
          ASSERT_EQ(p.data()[i], expected) << n << " " << i;
        } else {
          ASSERT_NEAR(p.data()[i], expected, 1e-6f);
        }
      }
    }
  });
}

}  // namespace
}  // namespace quern::kernels
