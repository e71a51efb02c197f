// Shared by tests: targets, reproducible data, misaligned buffers, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/target.h"

namespace quern::test {

// Runs body(target) with every available target selected in turn, or with the one that QUERN_TARGET names.
template <typename Body>
void for_each_target(Body body) {
  const kernels::Target before = kernels::current_target();
  const char* forced = std::getenv("QUERN_TARGET");
  const bool only_one = forced != nullptr && *forced != '\0';
  for (const kernels::Target& target : kernels::available_targets()) {
    if (only_one && target.name != forced) continue;
    SCOPED_TRACE("target " + target.name);
    kernels::select_target(target.name);
    body(target);
  }
  kernels::select_target(before.name);
}

// n floats, normal with the given deviation; the same for the same seed.
inline std::vector<float> normal(size_t n, unsigned seed, float deviation = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0.0f, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = distribution(generator);
  return values;
}

// A copy of `values` that starts `offset` floats past a 64-byte boundary, in an allocation that ends exactly with its
// last element (so that AddressSanitizer sees a read past it). offset 0 is aligned, 1..15 are not.
class Placed {
 public:
  Placed(std::span<const float> values, size_t offset) : size_(values.size()) {
    const size_t bytes = (offset + values.size()) * sizeof(float);
    block_ = static_cast<float*>(::operator new(bytes == 0 ? 4 : bytes, std::align_val_t(64)));
    data_ = block_ + offset;
    if (!values.empty()) std::memcpy(data_, values.data(), values.size_bytes());
  }
  Placed(size_t n, float value, size_t offset) : Placed(std::vector<float>(n, value), offset) {}
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  ~Placed() { ::operator delete(block_, std::align_val_t(64)); }

  float* data() { return data_; }
  const float* data() const { return data_; }
  std::span<float> span() { return {data_, size_}; }
  std::vector<float> copy() const { return {data_, data_ + size_}; }
  float& operator[](size_t i) { return data_[i]; }

 private:
  size_t size_;
  float* block_;
  float* data_;
};

// Bit for bit, NaN included.
inline ::testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> found) {
  if (expected.size() != found.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<uint32_t>(expected[i]) != std::bit_cast<uint32_t>(found[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": expected " << expected[i] << ", found " << found[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// |expected - found| <= tolerance * max(1, |expected|) for every element.
template <typename Expected>
::testing::AssertionResult close(const std::vector<Expected>& expected, std::span<const float> found,
                                 double tolerance) {
  if (expected.size() != found.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(expected[i]);
    const double f = static_cast<double>(found[i]);
    if (!(std::abs(e - f) <= tolerance * std::max(1.0, std::abs(e)))) {
      return ::testing::AssertionFailure() << "element " << i << ": expected " << e << ", found " << f;
    }
  }
  return ::testing::AssertionSuccess();
}

// The derivative of f at x by central differences, in double precision.
template <typename F>
double derivative(F f, double& x, double step = 1e-5) {
  const double saved = x;
  x = saved + step;
  const double above = f();
  x = saved - step;
  const double below = f();
  x = saved;
  return (above - below) / (2 * step);
}

}  // namespace quern::test
