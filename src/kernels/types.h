// The number formats that kernels read and write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

enum class DType : uint8_t { kF32, kBF16, kF16 };

// 16-bit formats are stored as raw bits.
using Half = uint16_t;

constexpr size_t size_of(DType type) { return type == DType::kF32 ? 4 : 2; }

// An array saved for backward, in any of the formats.
struct SavedTensor {
  void* data = nullptr;
  DType type = DType::kF32;

  SavedTensor at(size_t element) const { return {static_cast<char*>(data) + element * size_of(type), type}; }
};

}  // namespace quern::kernels
