// The building blocks of vec-inl.h and philox-inl.h themselves, through a small kernel compiled for every target.
#include <limits>

#include "core/philox.h"
#include "kernels/dropout.h"
#include "support/support.h"
#include "support/twin.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vec_test.cc"
#include "hwy/foreach_target.h"

#include "kernels/philox-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

void TestExp(const float* x, float* out) { Store16(Exp16(Load16(x)), out); }

float TestSum(const float* x) { return Sum16(Load16(x)); }

float TestMax(const float* x) { return MaxLane16(Load16(x)); }

// Loads n < 16 elements with `fill`, stores them all to `all` and the first n to `some`.
void TestPart(const float* x, size_t n, float fill, float* all, float* some) {
  const V16 v = LoadN16(x, n, fill);
  Store16(v, all);
  StoreN16(v, some, n);
}

// a + b, a - b, a * b and a * b + c, 16 of each.
void TestArithmetic(const float* a, const float* b, const float* c, float* out) {
  const V16 va = Load16(a), vb = Load16(b);
  Store16(Add16(va, vb), out);
  Store16(Sub16(va, vb), out + 16);
  Store16(Mul16(va, vb), out + 32);
  Store16(MulAdd16(va, vb, Load16(c)), out + 48);
}

// The words of 16 blocks: word w of block first + l at out[16 w + l].
void TestPhilox(const RandomStream& stream, uint32_t first, uint32_t* out) {
  const PhiloxVectors philox(stream);
  for (size_t part = 0; part < kParts; ++part) {
    const PhiloxWords words = philox.At(static_cast<uint32_t>(first + part * kN));
    hn::StoreU(words.w0, du, out + part * kN);
    hn::StoreU(words.w1, du, out + part * kN + 16);
    hn::StoreU(words.w2, du, out + part * kN + 32);
    hn::StoreU(words.w3, du, out + part * kN + 48);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(TestExp);
HWY_EXPORT(TestSum);
HWY_EXPORT(TestMax);
HWY_EXPORT(TestPart);
HWY_EXPORT(TestArithmetic);
HWY_EXPORT(TestPhilox);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> exp_of(std::vector<float> x) {
  x.resize((x.size() + 15) / 16 * 16);
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); i += 16) HWY_DYNAMIC_DISPATCH(TestExp)(&x[i], &out[i]);
  return out;
}

TEST(Vec, ExpIsWithinTwoUlpAndEqualsItsTwin) {
  std::vector<float> x;
  for (float value = -87.29f; value < 88.7f; value += 0.00371f) x.push_back(value);
  for (float value = 1.0f; value > 1e-30f; value *= 0.5f) x.insert(x.end(), {value, -value});
  test::for_each_target([&](const Target& target) {
    const std::vector<float> out = exp_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      const double ulp = std::exp2(std::floor(std::log2(exact)) - 23);
      // Without fused multiply-add n * ln 2 rounds once more: 1e-5 relative is what those targets promise.
      ASSERT_NEAR(out[i], exact, target.fma ? 2 * ulp : 1e-5 * exact) << "x = " << x[i];
      if (target.fma) {
        ASSERT_EQ(out[i], twin::exp(x[i])) << "x = " << x[i];
      }
    }
  });
}

TEST(Vec, ExpAtTheEnds) {
  test::for_each_target([&](const Target&) {
    const std::vector<float> out =
        exp_of({-87.31f, -100.0f, -3e38f, -kInfinity, 88.73f, 1000.0f, kInfinity, kNan, -kNan, 0.0f, -0.0f});
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(out[i], 0.0f) << i;
    for (size_t i = 4; i < 7; ++i) EXPECT_NEAR(out[i], std::exp(88.72), 3e33) << i;
    EXPECT_TRUE(std::isnan(out[7]) && std::isnan(out[8]));
    EXPECT_EQ(out[9], 1.0f);
    EXPECT_EQ(out[10], 1.0f);
  });
}

TEST(Vec, FoldsHaveOneOrder) {
  test::for_each_target([&](const Target&) {
    for (unsigned seed = 0; seed < 100; ++seed) {
      const std::vector<float> x = test::normal(16, seed, 1e3f);
      twin::Lanes lanes;
      for (size_t i = 0; i < 16; ++i) lanes.at(i) = x[i];
      EXPECT_EQ(HWY_DYNAMIC_DISPATCH(TestSum)(x.data()), lanes.sum());
      EXPECT_EQ(HWY_DYNAMIC_DISPATCH(TestMax)(x.data()), *std::max_element(x.begin(), x.end()));
    }
  });
}

TEST(Vec, PartialVectorsTouchOnlyTheirElements) {
  test::for_each_target([&](const Target&) {
    for (size_t n = 0; n < 16; ++n) {
      const std::vector<float> x = test::normal(n, 7);
      const test::Placed in(x, 1);
      test::Placed some(n, 0.0f, 1);
      std::vector<float> expected = x, all(16);
      expected.resize(16, 2.5f);
      HWY_DYNAMIC_DISPATCH(TestPart)(in.data(), n, 2.5f, all.data(), some.data());
      EXPECT_TRUE(test::same_bits(expected, all)) << n;
      EXPECT_TRUE(test::same_bits(x, some.span())) << n;
    }
  });
}

TEST(Vec, ArithmeticIsLaneByLane) {
  const std::vector<float> a = test::normal(16, 1), b = test::normal(16, 2), c = test::normal(16, 3);
  test::for_each_target([&](const Target& target) {
    std::vector<float> out(64);
    HWY_DYNAMIC_DISPATCH(TestArithmetic)(a.data(), b.data(), c.data(), out.data());
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(out[i], a[i] + b[i]);
      EXPECT_EQ(out[16 + i], a[i] - b[i]);
      EXPECT_EQ(out[32 + i], a[i] * b[i]);
      EXPECT_EQ(out[48 + i], target.fma ? std::fma(a[i], b[i], c[i]) : a[i] * b[i] + c[i]);
    }
  });
}

TEST(Vec, PhiloxWordsAreThoseOfTheStream) {
  const RandomStream stream{.seed = 0xFEDCBA9876543210u,
                            .purpose = Purpose::kAttentionDropout,
                            .layer = 65535,
                            .step = 0x80000001u,
                            .sequence = 0xFFFFFFFFu};
  test::for_each_target([&](const Target&) {
    for (const uint32_t first : {0u, 16u, 0x7FFFFFF0u, 0x80000000u, 0xFFFFFFF0u}) {
      uint32_t words[64];
      HWY_DYNAMIC_DISPATCH(TestPhilox)(stream, first, words);
      for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], stream.block(first + i % 16)[i / 16]) << first << ", " << i;
    }
  });
}

}  // namespace
}  // namespace quern::kernels
#endif  // HWY_ONCE
