// The vector instructions that the kernels use. Every kernel is compiled for each target and selected at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::kernels {

struct Target {
  std::string name;  // scalar, sse4, avx2, avx3, neon, ...
  bool fma;          // fused multiply-add: bit-identical to the scalar twin written with std::fma (promise I6)
};

// The targets that were compiled in and that this CPU supports, best first; the last is always "scalar".
std::vector<Target> available_targets();

// The current target: the best available one unless select_target() chose another.
Target current_target();

// Uses `name` from now on, for all kernels and threads. Throws Error with a list of the available names if this CPU or
// build does not have it. Do not call while a kernel runs.
void select_target(std::string_view name);

// Applies the environment variable QUERN_TARGET if it is set and not empty; throws like select_target.
void select_target_from_environment();

}  // namespace quern::kernels
