// Loops that do nothing but reach a limit of the machine, for the vector target in use. measure_machine() times them.
#pragma once

#include <cstddef>

namespace quern::kernels {

// Runs `rounds` rounds of independent fused multiply-adds from registers (a multiply and an add, two roundings, on
// targets without FMA) and returns how many floating-point operations that was: 2 per lane and multiply-add.
double multiply_adds(size_t rounds);

// Reads n floats and returns something that depends on all of them. n is a multiple of 64.
float read_floats(const float* x, size_t n);

// out = x, past the caches where the target can. n is a multiple of 64; both 64-byte aligned; no overlap.
void stream_copy(const float* x, float* out, size_t n);

}  // namespace quern::kernels
