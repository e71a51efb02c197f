// Scalar twins of the vector building blocks, written with std::fma: promise I6 says every target with fused
// multiply-add gives exactly these bits. Kernel tests build their own twins from these.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace quern::twin {

inline constexpr size_t kVirtualLanes = 16;

// The twin of Exp in kernels/vec-inl.h.
inline float exp(float x) {
  if (std::isnan(x)) return x;
  if (x < -87.3f) return 0.0f;
  const float clamped = x > 88.72f ? 88.72f : x;
  const float magic = 12582912.0f;
  const float shifted = std::fma(clamped, 1.44269504f, magic);
  const float n = shifted - magic;
  float r = std::fma(n, -0.693359375f, clamped);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 0.00139262508f;
  for (const float coefficient : {0.00836323288f, 0.0416665542f, 0.166665767f, 0.5f}) p = std::fma(p, r, coefficient);
  p = std::fma(p, r * r, r + 1.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(shifted) << 23));
}

// The twins of Gelu and GeluDerivative in kernels/gelu-inl.h.
inline float gelu(float x) {
  const float c = x < -9.98f ? -9.98f : x;
  const float exponent = c * std::fma(c * c, -0.0713548163f, -1.59576912f);
  return c / (exp(exponent) + 1.0f);
}
inline float gelu_derivative(float x) {
  const float c = x < -9.98f ? -9.98f : x > 9.98f ? 9.98f : x;
  const float square = c * c;
  const float e = exp(c * std::fma(square, -0.0713548163f, -1.59576912f));
  const float s = 1.0f / (e + 1.0f);
  const float slope = std::fma(square, 3.0f * 0.0713548163f, 1.59576912f);
  return std::fma((e * s) * (c * slope), s, s);
}

// The twin of Relu2 in kernels/relu2-inl.h.
inline float relu2(float x) {
  const float positive = x < 0.0f ? 0.0f : x;
  return positive * positive;
}

// The twin of CapTanh in kernels/cross_entropy.cc: tanh(z / cap).
inline float cap_tanh(float z, float cap) {
  if (std::isnan(z)) return z;
  const float x = z * (2.0f / cap), clamped = x < -20.0f ? -20.0f : x > 20.0f ? 20.0f : x;
  const float magic = 12582912.0f;
  const float shifted = std::fma(clamped, 1.44269504f, magic);
  const float n = shifted - magic;
  float r = std::fma(n, -0.693359375f, clamped);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 0.00139262508f;
  for (const float coefficient : {0.00836323288f, 0.0416665542f, 0.166665767f, 0.5f}) p = std::fma(p, r, coefficient);
  p = std::fma(p, r * r, r);
  const float power = std::ldexp(1.0f, static_cast<int>(n));
  const float m = std::fma(p, power, power - 1.0f);
  return m / (m + 2.0f);
}

// Sixteen virtual lanes and their fixed fold: element i of a row goes to lane i % 16.
struct Lanes {
  std::array<float, kVirtualLanes> lane{};

  explicit Lanes(float value = 0.0f) { lane.fill(value); }
  float& at(size_t i) { return lane[i % kVirtualLanes]; }

  template <typename Op>
  float fold(Op op) const {
    std::array<float, kVirtualLanes> x = lane;
    for (size_t half = kVirtualLanes / 2; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) x[l] = op(x[l], x[l + half]);
    }
    return x[0];
  }
  float sum() const {
    return fold([](float a, float b) { return a + b; });
  }
  float max() const {
    return fold([](float a, float b) { return a < b ? b : a; });
  }
};

}  // namespace quern::twin
