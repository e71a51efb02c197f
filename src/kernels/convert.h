// Conversion between fp32 and the 16-bit formats, rounding to nearest even.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

// out[i] = in[i] as bf16 or fp16, nearest even: overflow becomes infinity, subnormals are preserved, NaN retains its
// sign and the top bits of its payload and becomes quiet. Bit-identical on every target. `in` and `out` must not
// overlap. Any alignment, any thread, no allocation.
void to_bf16(const float* in, Half* out, size_t n) noexcept;
void to_f16(const float* in, Half* out, size_t n) noexcept;

// out[i] = in[i] as fp32; exact. NaN retains its payload; fp16 NaN becomes quiet.
void from_bf16(const Half* in, float* out, size_t n) noexcept;
void from_f16(const Half* in, float* out, size_t n) noexcept;

// The same by `type`, kBF16 or kF16.
void narrow(DType type, const float* in, Half* out, size_t n) noexcept;
void widen(DType type, const Half* in, float* out, size_t n) noexcept;

// saved[i] = x[i] as `type` (kBF16 or kF16), x[i] = saved[i] as fp32: the computation continues from exactly the saved
// values. One pass.
void save_rounded(float* x, Half* saved, DType type, size_t n) noexcept;

}  // namespace quern::kernels
