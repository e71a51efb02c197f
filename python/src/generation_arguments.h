// Arguments of the functions that generate text.
#pragma once

#include <cstddef>

#include "generate/sampler.h"
#include "module.h"

namespace quern::python {

struct SamplingArguments {
  py::object temperature, top_k, top_p, min_p, repeat_penalty, repeat_window, seed;
};

// Error, which names the argument, unless each is a number of its type; check(Sampling) checks their ranges.
Sampling sampling_from(const SamplingArguments& arguments);

// The maximum number of tokens: 0 or more.
size_t token_limit_from(const py::object& tokens);

}  // namespace quern::python
