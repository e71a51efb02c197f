// clang-format off
// Conversion between fp32 and the formats of tensors in files, a run of values at a time.
//
//   Q8_0   32 values in 34 bytes   f16 d, 32 x int8 q            value = d q
//   Q4_0   32 values in 18 bytes   f16 d, 16 bytes               value = d (q - 8)
//   Q4_1   32 values in 20 bytes   f16 d, f16 m, 16 bytes        value = d q + m
//
// The low nibble of byte i is the q of value i, the high one that of value i + 16.
// clang-format on
#pragma once

#include <cstddef>
#include <span>

#include "formats/ggml_type.h"

namespace quern::formats {

// The bytes of `count` values, a multiple of the type's block; the caller has checked that the product fits.
size_t encoded_bytes(GgmlType type, size_t count) noexcept;

// out = the values of `in`, which has encoded_bytes(type, out.size()) bytes of any alignment. `type` must be
// convertible. Exact for F32, F16 and BF16; the others in fp32 arithmetic without fused operations, as gguf-py does.
void decode(GgmlType type, std::span<const std::byte> in, std::span<float> out) noexcept;

// out = `in` as F32, F16, BF16 (to nearest even) or Q8_0. Q8_0 has the bits of ggml's reference: d = max |x| / 127, q =
// x * (1 / d) rounded half away from zero, where d is still fp32; only then is d rounded to f16. Not for Q4_0 and Q4_1.
void encode(GgmlType type, std::span<const float> in, std::span<std::byte> out) noexcept;

}  // namespace quern::formats
