// Arguments that several functions take.
#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "module.h"

namespace quern::python {

// Token ids of one sequence or of several of equal length. A copy: other threads may change the caller's array while
// Python's lock is not ours, after the ids were checked.
struct Tokens {
  std::vector<int32_t> ids;  // (count, T)
  size_t count = 0, T = 0;
  bool several = false;  // two dimensions
};

// From whatever NumPy makes an array of. Error unless it has one or two dimensions and whole numbers of 32 bits.
Tokens tokens_from(const py::object& object);

// The threads that a function may use: every core for None. Error unless 1 to train::kMaxThreads.
size_t threads_from(const py::object& threads);

// Raises KeyboardInterrupt, or what another signal's handler raised. Takes Python's lock for it.
void check_signals();

// warnings.warn(text). With Python's lock.
void warn(const std::string& text);

}  // namespace quern::python
