// Conversion of Python and NumPy numbers and arrays to C++. Every such conversion goes through this file and follows
// one rule: the value is preserved, or an Error says where, what was expected and what was found.
//
// - An integer comes from int, bool or NumPy's integers (anything with __index__), and must be in range. A float is
//   rejected even when its value is an integer: above 2^53 it may already differ from the intended number.
// - A real number comes from a float, which is rounded to nearest but must stay finite, or from an integer that it can
//   represent exactly.
// - Complex numbers, strings, dates and None are never numbers.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "module.h"

namespace quern::python {

// `what` is the prefix of every Error message: "[replay] capacity".

uint64_t whole_from(const py::handle& object, std::string_view what, uint64_t min = 0,
                    uint64_t max = std::numeric_limits<uint64_t>::max());

// The same for signed integers; the caller checks the range.
int64_t signed_from(const py::handle& object, std::string_view what);

// May be infinite or NaN if the object is: the caller checks the range.
double real_from(const py::handle& object, std::string_view what);
float float_from(const py::handle& object, std::string_view what);

// An array of this dtype (bool, an integer or a float) with the object's shape: the object itself if it already is such
// an array and C-contiguous, at no cost; otherwise a converted copy. An empty array may have any dtype.
py::array array_from(const py::object& object, const py::dtype& dtype, std::string_view what);

// Whether it is a number and not complex.
bool is_real(const py::handle& object);

// Its repr(), as one line of limited length.
std::string shown(const py::handle& object);

// The name of its type.
std::string type_name(const py::handle& object);

}  // namespace quern::python
