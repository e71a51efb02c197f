#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "support/half.h"
#include "support/support.h"

namespace quern::kernels {
namespace {

std::vector<Half> all_halves() {
  std::vector<Half> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<Half>(i);
  return halves;
}

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

// Every place where rounding changes its mind: each half value, the midpoint to the next, and the floats beside both;
// then NaNs of all kinds, fp32 subnormals, and random bit patterns.
std::vector<float> hard_floats() {
  std::vector<float> values;
  const auto with_neighbours = [&](uint32_t bits) {
    for (uint32_t delta = 0; delta < 5; ++delta) values.push_back(from_bits(bits + delta - 2));
  };
  for (uint32_t half = 0; half < 65536; ++half) {
    for (const float value :
         {twin::F16::to_float(static_cast<Half>(half)), twin::BF16::to_float(static_cast<Half>(half))}) {
      with_neighbours(std::bit_cast<uint32_t>(value));
    }
    const double here = twin::F16::to_float(static_cast<Half>(half));
    const double next =
        half % 0x8000 == 0x7BFF ? 65536 * (here < 0 ? -1 : 1) : twin::F16::to_float(static_cast<Half>(half + 1));
    with_neighbours(std::bit_cast<uint32_t>(static_cast<float>((here + next) / 2)));
    with_neighbours(half << 16 | 0x8000u);
  }
  std::mt19937 random(7);
  for (int i = 0; i < 2000000; ++i) values.push_back(from_bits(static_cast<uint32_t>(random())));
  for (int i = 0; i < 500000; ++i) {  // where fp16 lives: exponents 2^-27 .. 2^17
    const uint32_t exponent = 100 + static_cast<uint32_t>(random()) % 45;
    values.push_back(from_bits((static_cast<uint32_t>(random()) & 0x807FFFFFu) | exponent << 23));
  }
  return values;
}

using Demote = void (*)(const float*, Half*, size_t) noexcept;
using Promote = void (*)(const Half*, float*, size_t) noexcept;

void expect_demotes(Demote demote, Half (*twin)(float)) {
  const std::vector<float> in = hard_floats();
  std::vector<Half> expected(in.size()), found(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = twin(in[i]);
  test::for_each_target([&](const Target&) {
    std::fill(found.begin(), found.end(), Half{0x5555});
    demote(in.data(), found.data(), in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(expected[i], found[i]) << std::hex << "fp32 bits " << std::bit_cast<uint32_t>(in[i]);
    }
  });
}

TEST(Convert, ToF16RoundsToNearestEvenOnEveryTarget) { expect_demotes(to_f16, twin::F16::from_float); }
TEST(Convert, ToBF16RoundsToNearestEvenOnEveryTarget) { expect_demotes(to_bf16, twin::BF16::from_float); }

TEST(Convert, KnownValues) {
  const std::vector<float> in = {1.0f,          65504.0f,       65519.996f,      65520.0f,
                                 0x1p-24f,      0x1p-25f,       0x1.000002p-25f, -0.0f,
                                 1.0009765625f, 1.00048828125f, 1.00146484375f,  from_bits(0xFF800001u)};
  const std::vector<Half> f16 = {0x3C00, 0x7BFF, 0x7BFF, 0x7C00, 0x0001, 0x0000,
                                 0x0001, 0x8000, 0x3C01, 0x3C00, 0x3C02, 0xFE00};
  const std::vector<float> more = {1.0f,      1.00390625f, 1.01171875f, 3.4028235e38f, from_bits(0x7F800001u),
                                   0x1p-133f, 0x1p-134f};
  const std::vector<Half> bf16 = {0x3F80, 0x3F80, 0x3F82, 0x7F80, 0x7FC0, 0x0001, 0x0000};
  test::for_each_target([&](const Target&) {
    std::vector<Half> found(in.size());
    to_f16(in.data(), found.data(), in.size());
    EXPECT_EQ(found, f16);
    found.resize(more.size());
    to_bf16(more.data(), found.data(), more.size());
    EXPECT_EQ(found, bf16);
  });
}

TEST(Convert, EveryHalfIsReadExactly) {
  const std::vector<Half> halves = all_halves();
  std::vector<float> bf16(halves.size()), f16(halves.size()), found(halves.size());
  for (const Half half : halves) {
    bf16[half] = twin::BF16::to_float(half);
    f16[half] = twin::quiet(twin::F16::to_float(half));
  }
  test::for_each_target([&](const Target&) {
    from_bf16(halves.data(), found.data(), halves.size());
    EXPECT_TRUE(test::same_bits(bf16, found));
    from_f16(halves.data(), found.data(), halves.size());
    EXPECT_TRUE(test::same_bits(f16, found));
  });
}

TEST(Convert, EveryHalfSurvivesTheRoundTrip) {
  const std::vector<Half> halves = all_halves();
  const auto expect_round_trip = [&](Promote promote, Demote demote, Half infinity, Half quiet) {
    std::vector<float> floats(halves.size());
    std::vector<Half> found(halves.size());
    promote(halves.data(), floats.data(), halves.size());
    demote(floats.data(), found.data(), halves.size());
    for (const Half half : halves) {
      const bool nan = (half & 0x7FFF) > infinity;
      ASSERT_EQ(nan ? half | quiet : half, found[half]);
    }
  };
  test::for_each_target([&](const Target&) {
    expect_round_trip(from_bf16, to_bf16, 0x7F80, 0x0040);
    expect_round_trip(from_f16, to_f16, 0x7C00, 0x0200);
  });
}

// Exact-size heap blocks, so that AddressSanitizer sees a touch past either end; a guard shows stray writes.
TEST(Convert, EverySizeAndAlignment) {
  test::for_each_target([&](const Target&) {
    for (size_t n = 0; n <= 150; ++n) {
      const size_t offset = n % 16;
      test::Placed in(test::normal(n, static_cast<unsigned>(n)), offset), back(n, 7.0f, (offset + 5) % 16);
      const auto block = std::make_unique<Half[]>(n + offset + 1);
      Half* const half = block.get() + offset;
      half[n] = 0x1234;
      for (const bool bf16 : {true, false}) {
        (bf16 ? to_bf16 : to_f16)(in.data(), half, n);
        (bf16 ? from_bf16 : from_f16)(half, back.data(), n);
        for (size_t i = 0; i < n; ++i) {
          ASSERT_EQ(half[i], (bf16 ? twin::BF16::from_float : twin::F16::from_float)(in[i])) << i << " of " << n;
          ASSERT_EQ(back[i], (bf16 ? twin::BF16::to_float : twin::F16::to_float)(half[i])) << i << " of " << n;
        }
        ASSERT_EQ(half[n], 0x1234);
      }
    }
  });
}

TEST(Convert, NarrowAndWidenDispatchOnTheType) {
  const std::vector<float> in = test::normal(37, 3);
  std::vector<Half> bf16(37), f16(37), found(37);
  std::vector<float> expected(37), back(37);
  to_bf16(in.data(), bf16.data(), 37);
  to_f16(in.data(), f16.data(), 37);
  narrow(DType::kBF16, in.data(), found.data(), 37);
  EXPECT_EQ(found, bf16);
  narrow(DType::kF16, in.data(), found.data(), 37);
  EXPECT_EQ(found, f16);
  from_bf16(bf16.data(), expected.data(), 37);
  widen(DType::kBF16, bf16.data(), back.data(), 37);
  EXPECT_EQ(back, expected);
  from_f16(f16.data(), expected.data(), 37);
  widen(DType::kF16, f16.data(), back.data(), 37);
  EXPECT_EQ(back, expected);
}

TEST(Convert, RoundingTwiceChangesNothing) {
  test::for_each_target([&](const Target&) {
    for (const DType type : {DType::kBF16, DType::kF16}) {
      for (size_t n = 0; n <= 150; ++n) {
        const size_t offset = n % 16;
        std::vector<float> values = test::normal(n, static_cast<unsigned>(n), 1e3f);
        if (n > 20) values[n / 2] = std::numeric_limits<float>::quiet_NaN(), values[3] = 1e-40f, values[n - 1] = 1e30f;
        test::Placed x(values, offset);
        std::vector<Half> expected(n);
        std::vector<float> widened(n);
        narrow(type, values.data(), expected.data(), n);
        widen(type, expected.data(), widened.data(), n);
        const auto saved = std::make_unique<Half[]>(n + offset + 1);
        saved[n + offset] = 0x1234;
        save_rounded(x.data(), saved.get() + offset, type, n);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), saved.get() + offset)) << n;
        EXPECT_TRUE(test::same_bits(widened, x.span())) << n;
        EXPECT_EQ(saved[n + offset], 0x1234);
      }
    }
  });
}

}  // namespace
}  // namespace quern::kernels
