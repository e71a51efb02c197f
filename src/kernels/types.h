// The number formats that kernels read and write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

enum class DType : uint8_t { kF32, kBF16, kF16 };

// 16-bit formats are stored as their bits.
using Half = uint16_t;

constexpr size_t size_of(DType type) { return type == DType::kF32 ? 4 : 2; }

}  // namespace quern::kernels
