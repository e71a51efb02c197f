#include "kernels/swiglu.h"

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

// The function and its gradients as the contract defines them.
struct Twin {
  Twin(float gate, float up, float dout) {
    const float low = gate < -87.0f ? -87.0f : gate, x = low > 87.0f ? 87.0f : low;
    const float e = twin::exp(-x), s = 1.0f / (e + 1.0f), silu = low / (e + 1.0f);
    out = silu * up;
    dup = dout * silu;
    dgate = (dout * up) * std::fma((e * s) * x, s, s);
  }
  float out, dgate, dup;
};

double silu(double x) { return x / (1 + std::exp(-x)); }

std::vector<float> forward(const std::vector<float>& gate, const std::vector<float>& up, size_t offset = 0) {
  const test::Placed g(gate, offset), u(up, offset / 3);
  test::Placed out(gate.size(), -7.0f, offset / 2);
  swiglu_forward(g.data(), u.data(), out.data(), gate.size());
  return out.copy();
}

struct Gradients {
  std::vector<float> out, dgate, dup;
};

Gradients backward(const std::vector<float>& gate, const std::vector<float>& up, DType type,
                   const std::vector<float>& dout, size_t offset = 0) {
  Stored g(type, gate, offset), u(type, up, offset / 3);
  test::Placed dgate(dout, offset / 2), dup(gate.size(), -7.0f, offset), out(gate.size(), -7.0f, offset / 4);
  swiglu_backward(
      {.gate = {g.at(0), type}, .up = {u.at(0), type}, .dout = dgate.data(), .dup = dup.data(), .out = out.data()},
      gate.size());
  return {out.copy(), dgate.copy(), dup.copy()};
}

TEST(Swiglu, ForwardMatchesTheTwinBitForBitAndTheFormulaInDouble) {
  std::vector<float> gate;
  for (int i = -4000; i <= 4000; ++i) gate.push_back(static_cast<float>(i) * 0.003f);
  for (const float far : {86.9f, 87.0f, 87.1f, 100.0f, 1e10f, 3.4e38f, 1e-20f, 1e-45f, 0.0f}) {
    gate.push_back(far);
    gate.push_back(-far);
  }
  const std::vector<float> up = test::normal(gate.size(), 1);
  test::for_each_target([&](const Target& target) {
    const std::vector<float> out = forward(gate, up, 1);
    for (size_t i = 0; i < gate.size(); ++i) {
      if (target.fma) {
        EXPECT_EQ(out[i], Twin(gate[i], up[i], 1.0f).out) << gate[i];
      }
      const double expected = silu(static_cast<double>(gate[i])) * static_cast<double>(up[i]);
      if (std::abs(expected) > 3e38) continue;
      EXPECT_NEAR(out[i], expected, 1e-6 * std::abs(expected) + 1e-35) << gate[i];
    }
  });
}

TEST(Swiglu, EverySizeAlignmentAndFormat) {
  test::for_each_target([&](const Target& target) {
    if (!target.fma) return;
    for (const size_t n : kSizes) {
      const std::vector<float> gate = test::normal(n, 1, 4.0f), up = test::normal(n, 2), dout = test::normal(n, 3);
      for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
        Gradients expected;
        for (size_t i = 0; i < n; ++i) {
          const Twin twin(rounded(type, gate[i]), rounded(type, up[i]), dout[i]);
          expected.out.push_back(twin.out);
          expected.dgate.push_back(twin.dgate);
          expected.dup.push_back(twin.dup);
        }
        for (const size_t offset : {0, 1, 5, 15}) {
          const Gradients found = backward(gate, up, type, dout, offset);
          EXPECT_TRUE(test::same_bits(expected.out, found.out)) << "n = " << n << ", offset " << offset;
          EXPECT_TRUE(test::same_bits(expected.dgate, found.dgate)) << "n = " << n << ", offset " << offset;
          EXPECT_TRUE(test::same_bits(expected.dup, found.dup)) << "n = " << n << ", offset " << offset;
          if (type == DType::kF32) {
            EXPECT_TRUE(test::same_bits(expected.out, forward(gate, up, offset)));
          }
        }
      }
    }
  });
}

TEST(Swiglu, GradientsMatchFiniteDifferences) {
  const std::vector<float> gate = test::normal(500, 3, 3.0f), up = test::normal(500, 4), dout = test::normal(500, 5);
  test::for_each_target([&](const Target&) {
    const Gradients found = backward(gate, up, DType::kF32, dout);
    for (size_t i = 0; i < gate.size(); ++i) {
      double g = static_cast<double>(gate[i]), u = static_cast<double>(up[i]);
      const auto value = [&] { return static_cast<double>(dout[i]) * silu(g) * u; };
      EXPECT_NEAR(found.dgate[i], test::derivative(value, g), 3e-5) << gate[i];
      EXPECT_NEAR(found.dup[i], test::derivative(value, u), 3e-5) << gate[i];
    }
  });
}

TEST(Swiglu, NanAndInfinityStayVisible) {
  test::for_each_target([&](const Target&) {
    for (const size_t n : {1, 16, 17, 33}) {
      std::vector<float> sick(n, 1.0f);
      const std::vector<float> ones(n, 1.0f);
      sick.back() = kNan;
      EXPECT_TRUE(std::isnan(forward(sick, ones).back()));
      EXPECT_TRUE(std::isnan(forward(ones, sick).back()));
      EXPECT_EQ(std::isnan(forward(sick, ones).front()), n == 1);
      const Gradients found = backward(sick, ones, DType::kF32, ones);
      EXPECT_TRUE(std::isnan(found.out.back()) && std::isnan(found.dgate.back()) && std::isnan(found.dup.back()));
      sick.back() = kInfinity;
      EXPECT_EQ(forward(sick, ones).back(), kInfinity);
    }
  });
}

TEST(Swiglu, InPlace) {
  const std::vector<float> gate = test::normal(37, 4), up = test::normal(37, 5);
  test::for_each_target([&](const Target&) {
    test::Placed values(gate, 2);
    swiglu_forward(values.data(), up.data(), values.data(), gate.size());
    EXPECT_TRUE(test::same_bits(forward(gate, up), values.span()));
  });
}

}  // namespace
}  // namespace quern::kernels
