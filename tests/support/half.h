// Scalar twins of the conversions between fp32 and the 16-bit formats, by arithmetic in double precision: every target
// gives exactly these bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace quern::twin {

// A 16-bit float with `kMantissa` stored bits whose normal numbers start at 2^kLowest.
template <int kMantissa, int kLowest>
struct HalfFormat {
  static constexpr int kExponentMask = (1 << (15 - kMantissa)) - 1;
  static constexpr uint16_t kInfinity = static_cast<uint16_t>(kExponentMask << kMantissa);
  static constexpr uint16_t kQuiet = static_cast<uint16_t>(1 << (kMantissa - 1));

  // Nearest, ties to even: x is scaled to units of the last place, where std::nearbyint rounds.
  static uint16_t from_float(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const auto sign = static_cast<uint16_t>(bits >> 31 << 15);
    if (std::isnan(x)) {
      const auto payload = static_cast<uint16_t>((bits & 0x7FFFFFu) >> (23 - kMantissa));
      return static_cast<uint16_t>(sign | kInfinity | kQuiet | payload);
    }
    if (std::isinf(x)) return static_cast<uint16_t>(sign | kInfinity);
    const double magnitude = std::abs(static_cast<double>(x));
    if (magnitude == 0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), kLowest);
    const double units = std::nearbyint(std::ldexp(magnitude, kMantissa - exponent));
    // units reaches 2^(kMantissa + 1) when rounding carries; adding it to the exponent field carries too.
    const int field = ((exponent - kLowest) << kMantissa) + static_cast<int>(units);
    return static_cast<uint16_t>(sign | (field < kInfinity ? field : kInfinity));
  }

  static float to_float(uint16_t half) {
    const int exponent = (half >> kMantissa) & kExponentMask;
    const int mantissa = half & ((1 << kMantissa) - 1);
    const uint32_t sign = static_cast<uint32_t>(half >> 15) << 31;
    if (exponent == kExponentMask) {
      return std::bit_cast<float>(sign | 0x7F800000u | static_cast<uint32_t>(mantissa) << (23 - kMantissa));
    }
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << kMantissa);
    const double value = std::ldexp(whole, std::max(exponent, 1) - 1 + kLowest - kMantissa);
    return static_cast<float>(sign != 0 ? -value : value);
  }
};

using BF16 = HalfFormat<7, -126>;
using F16 = HalfFormat<10, -14>;

inline float quiet(float x) { return std::isnan(x) ? std::bit_cast<float>(std::bit_cast<uint32_t>(x) | 0x400000u) : x; }

}  // namespace quern::twin
