// exp and log that give the same bits on every CPU. Those of the C library have variants with and without fused
// multiply-add, which may differ in the last bit, and in self-play one bit decides which move a search visits.
#pragma once

#include <bit>
#include <cstdint>

namespace quern {

// e^x, relative error below 1e-15; 0 below -708, NaN for NaN, and x must not be above 709. x = k log 2 + r, and a
// Taylor series of e^r: |r| <= 0.347, so the first term left out, r^14 / 14!, is below 5e-18.
inline double portable_exp(double x) noexcept {
  if (!(x >= -708.0)) return x < -708.0 ? 0.0 : x;
  constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;  // their sum is log 2
  const double scaled = x * 1.4426950408889634;
  const auto k = static_cast<int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - static_cast<double>(k) * kLog2High) - static_cast<double>(k) * kLog2Low;
  double sum = 1.0;
  for (int term = 13; term >= 1; --term) sum = 1.0 + sum * r / term;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

// log x of a normal positive number, absolute error below 1e-15 * max(1, |log x|). x = 2^e m with m from sqrt(1/2) to
// sqrt 2, and log m = 2 artanh s with s = (m - 1) / (m + 1): |s| <= 0.172, so s^23 / 23 is below 2e-19.
inline double portable_log(double x) noexcept {
  constexpr uint64_t kHalfRoot = 0x3FE6A09E667F3BCD;  // the bits of sqrt(1/2)
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t e = static_cast<int64_t>(bits - kHalfRoot) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(e) << 52));
  const double s = (m - 1.0) / (m + 1.0), square = s * s;
  double sum = 0.0;
  for (int power = 21; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return 2.0 * s * sum + static_cast<double>(e) * 0.6931471805599453;
}

}  // namespace quern
