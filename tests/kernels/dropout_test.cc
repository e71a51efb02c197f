#include "kernels/dropout.h"

#include <limits>

#include "support/support.h"

namespace quern::kernels {
namespace {

Dropout options_of(float rate, uint32_t sequence = 5) {
  return {.rate = rate,
          .stream = {.seed = 0x123456789ABCDEF0u,
                     .purpose = Purpose::kResidualDropout,
                     .layer = 3,
                     .step = 0xFFFFFFFEu,
                     .sequence = sequence}};
}

// One element at a time, from the definition.
std::vector<float> naive(const Dropout& options, const std::vector<float>& x, uint64_t first) {
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool survives = dropout_word(options.stream, first + i) >= options.threshold();
    out.push_back(survives ? x[i] * options.scale() : 0.0f);
  }
  return out;
}

std::vector<float> run(const Dropout& options, const std::vector<float>& x, uint64_t first = 0, size_t offset = 0) {
  test::Placed in(x, offset), out(x.size(), -7.0f, offset / 2);
  dropout(options, in.data(), out.data(), x.size(), first);
  return out.copy();
}

TEST(Dropout, MaskIsTheDefinedOneOnEveryTarget) {
  test::for_each_target([&](const Target&) {
    for (const float rate : {0.1f, 0.5f, 0.999f, std::nextafter(1.0f, 0.0f), 1e-9f}) {
      for (const size_t n : {0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 1000}) {
        const std::vector<float> x = test::normal(n, 1);
        for (const size_t offset : {0, 1, 7}) {
          EXPECT_TRUE(test::same_bits(naive(options_of(rate), x, 0), run(options_of(rate), x, 0, offset)))
              << "rate " << rate << ", n = " << n << ", offset " << offset;
        }
      }
    }
  });
}

TEST(Dropout, FirstContinuesTheMaskUpToTheEndOfTheStream) {
  const std::vector<float> x = test::normal(300, 2);
  const uint64_t end = uint64_t{1} << 34;
  test::for_each_target([&](const Target&) {
    for (const uint64_t first : {uint64_t{64}, uint64_t{6400}, (uint64_t{1} << 33) - 128, end - 320}) {
      EXPECT_TRUE(test::same_bits(naive(options_of(0.3f), x, first), run(options_of(0.3f), x, first))) << first;
    }
    const std::vector<float> whole = run(options_of(0.3f), x);
    const std::vector<float> tail(x.begin() + 128, x.end());
    EXPECT_TRUE(test::same_bits(std::span(whole).subspan(128), run(options_of(0.3f), tail, 128)));
  });
}

TEST(Dropout, RateZeroIsTheIdentity) {
  std::vector<float> x = test::normal(133, 3);
  x[1] = std::numeric_limits<float>::quiet_NaN();
  x[2] = -std::numeric_limits<float>::infinity();
  x[3] = -0.0f;
  x[4] = 1e-45f;
  test::for_each_target([&](const Target&) {
    EXPECT_TRUE(test::same_bits(x, run(options_of(0.0f), x, 0, 1)));
    test::Placed values(x, 0);
    dropout(options_of(0.0f), values.data(), values.data(), x.size());
    EXPECT_TRUE(test::same_bits(x, values.span()));
  });
}

TEST(Dropout, DroppedElementsAreZeroEvenIfNotFinite) {
  const std::vector<float> x(256, -std::numeric_limits<float>::infinity());
  test::for_each_target(
      [&](const Target&) { EXPECT_TRUE(test::same_bits(naive(options_of(0.5f), x, 0), run(options_of(0.5f), x))); });
}

TEST(Dropout, InPlaceAndBackwardUseTheSameMask) {
  const std::vector<float> x = test::normal(200, 4), ones(200, 1.0f);
  test::for_each_target([&](const Target&) {
    const std::vector<float> slope = run(options_of(0.4f), ones);  // the derivative: the function is linear
    test::Placed values(x, 3);
    dropout(options_of(0.4f), values.data(), values.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(values[i], x[i] * slope[i]) << i;
  });
}

TEST(Dropout, PreservesTheRateAndTheMean) {
  const size_t n = 100000;
  const std::vector<float> ones(n, 1.0f);
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    const std::vector<float> out = run(options_of(rate), ones);
    const double dropped = static_cast<double>(std::count(out.begin(), out.end(), 0.0f)) / static_cast<double>(n);
    const double deviation = std::sqrt(rate * (1 - rate) / static_cast<double>(n));
    EXPECT_NEAR(dropped, rate, 5 * deviation);
    EXPECT_FALSE(test::same_bits(out, run(options_of(rate, 6), ones))) << "another sequence, the same mask";
  }
}

}  // namespace
}  // namespace quern::kernels
