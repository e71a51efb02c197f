// Loops that only exercise a limit of the machine, for the current vector target. measure_machine() times them.
#pragma once

#include <cstddef>

namespace quern::kernels {

// Runs `rounds` rounds of independent fused multiply-adds in registers (a multiply and an add, two roundings, on
// targets without FMA) and returns the number of floating-point operations: 2 per lane and multiply-add.
double multiply_adds(size_t rounds);

// Reads n floats and returns a value that depends on all of them. n must be a multiple of 64.
float read_floats(const float* x, size_t n);

// out = x, bypassing the caches where the target can. n must be a multiple of 64; both 64-byte aligned; no overlap.
void stream_copy(const float* x, float* out, size_t n);

}  // namespace quern::kernels
