// Loops that read and write the same bytes as a kernel and compute nothing: the limit of a memory-bound kernel. Same
// target, vector width and in-place writes as the kernel. The bitwise operations keep the compiler from dropping a load
// or a store. A loop that writes in place does not change the values (`zero` must be 0, which the compiler cannot
// know), so it can alternate with the kernel on the same arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::bench {

// Reads four arrays, writes p, m and v back: AdamW.
void traffic_adamw(float* p, const float* gradient, float* m, float* v, size_t n, int32_t zero) noexcept;
// Reads x and sum, writes sum back: accumulate.
void traffic_accumulate(float* sum, const float* x, size_t n, int32_t zero) noexcept;
// Reads x and writes it back: scale.
void traffic_scale(float* x, size_t n, int32_t zero) noexcept;
// Reads x: norm, finite check.
int32_t traffic_read(const float* x, size_t n) noexcept;
// Reads n floats, writes 2 n bytes: fp32 to a 16-bit format.
void traffic_narrow(const float* in, uint16_t* out, size_t n) noexcept;
// Reads 2 n bytes, writes n floats: a 16-bit format to fp32.
void traffic_widen(const uint16_t* in, float* out, size_t n) noexcept;
// Reads x and writes it back, writes 2 n bytes: rounding in place, with a 16-bit copy.
void traffic_keep(float* x, uint16_t* kept, size_t n, int32_t zero) noexcept;
// Reads x and gradient, writes gradient back and out: GELU in both directions.
void traffic_gelu(const float* x, float* gradient, float* out, size_t n, int32_t zero) noexcept;
// The same from 2 n bytes of x.
void traffic_gelu_half(const uint16_t* x, float* gradient, float* out, size_t n, int32_t zero) noexcept;

}  // namespace quern::bench
