// Arguments that several functions take.
#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "module.h"

namespace quern::python {

// Token ids of one sequence or of several of equal length. A copy: while the GIL is released, other threads may change
// the caller's array after the ids were checked.
struct Tokens {
  std::vector<int32_t> ids;  // (count, T)
  size_t count = 0, T = 0;
  bool several = false;  // two dimensions
};

// From anything NumPy can convert to an array. Error unless it has one or two dimensions and 32-bit integers.
Tokens tokens_from(const py::object& object);

// Number of threads for a function: every core for None. Error unless 1 to kMaxThreads.
size_t threads_from(const py::object& threads);

// "newest", "best", a step or a path, as find_checkpoint() takes it; empty for None.
std::string checkpoint_from(const py::object& checkpoint);

// Raises KeyboardInterrupt, or the exception of another signal's handler. Acquires the GIL.
void check_signals();

// warnings.warn(text). The caller holds the GIL.
void warn(const std::string& text);

}  // namespace quern::python
