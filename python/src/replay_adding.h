// Priorities of rows, from Python.
#pragma once

#include <pybind11/numpy.h>

#include <string_view>

#include "module.h"

namespace quern::python {

// As float32; the caller's array without a copy if it has that dtype.
py::array_t<float> priorities_from(const py::object& given, std::string_view what);

}  // namespace quern::python
