// SwiGLU, the gated activation of Llama: silu(gate) * up with silu(x) = x / (1 + exp(-x)), and its gradient.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern::kernels {

// out[i] = silu(gate[i]) * up[i] for i < n. `out` may alias either input. Elementwise: any split gives the same bits.
// Any alignment, any thread, no allocation.
//
// In fp32, with e = exp(-min(max(x, -87), 87)): silu = max(x, -87) / (1 + e), which above 87 is x. NaN stays NaN.
void swiglu_forward(const float* gate, const float* up, float* out, size_t n) noexcept;

// Backward from the inputs that forward saw, in the format in which they were saved.
struct SwigluBackward {
  SavedTensor gate, up;  // (n), of the same type
  float* dout;           // (n): gradient of the output; overwritten by that of the gate
  float* dup;            // (n), overwritten
  float* out;            // (n), overwritten: forward's output, which weight gradients need
};

// With s = 1 / (1 + e): dup = dout * silu, dgate = (dout * up) * (s + x s (1 - s)), where 1 - s is e s. In fp32:
// fma(e s * x, s, s), x clamped to [-87, 87]. `gate` and `up` may alias nothing that is written. Elementwise, as above.
void swiglu_backward(const SwigluBackward& args, size_t n) noexcept;

}  // namespace quern::kernels
