// Arrays of any format for kernel tests, and scalar conversions between the formats.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/types.h"
#include "support/half.h"
#include "support/support.h"

namespace quern::kernels {

inline Half narrow(DType type, float x) {
  return type == DType::kBF16 ? twin::BF16::from_float(x) : twin::F16::from_float(x);
}
inline float widen(DType type, Half x) {
  return type == DType::kBF16 ? twin::BF16::to_float(x) : twin::F16::to_float(x);
}
inline float rounded(DType type, float x) { return type == DType::kF32 ? x : widen(type, narrow(type, x)); }

// n values of `type` in an allocation that ends with the last of them, `offset` values past an aligned start.
class Stored {
 public:
  Stored(DType type, size_t n, size_t offset)
      : type_(type),
        n_(n),
        floats_(type == DType::kF32 ? n : 0, -7.0f, offset),
        block_(type == DType::kF32 ? 0 : n + offset, Half{0x5555}),
        halves_(block_.data() + offset) {
    block_.shrink_to_fit();
  }
  Stored(DType type, std::span<const float> values, size_t offset) : Stored(type, values.size(), offset) {
    for (size_t i = 0; i < n_; ++i) {
      if (type == DType::kF32) floats_[i] = values[i];
      if (type != DType::kF32) halves_[i] = narrow(type, values[i]);
    }
  }
  void* at(size_t i) { return type_ == DType::kF32 ? static_cast<void*>(floats_.data() + i) : halves_ + i; }
  std::vector<float> copy() const {
    if (type_ == DType::kF32) return floats_.copy();
    std::vector<float> values(n_);
    for (size_t i = 0; i < n_; ++i) values[i] = widen(type_, halves_[i]);
    return values;
  }

 private:
  DType type_;
  size_t n_;
  test::Placed floats_;
  std::vector<Half> block_;
  Half* halves_;
};

}  // namespace quern::kernels
