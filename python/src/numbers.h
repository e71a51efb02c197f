// Numbers and arrays of Python and NumPy as ours. Every conversion from one to the other goes through this file, and
// follows one rule: the value arrives as it is, or an Error says where, what was expected and what was found.
//
// - A whole number comes from int, bool or NumPy's integers (whatever has __index__), and must be in range. A float is
//   refused even when it is whole: above 2^53 it may already be another number than the one that was meant.
// - A real number comes from a float, which is rounded to the nearest as usual but stays finite, or from a whole number
//   that it can represent exactly.
// - Complex numbers, texts, dates and None are never numbers.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "module.h"

namespace quern::python {

// `what` starts the message of every Error: "[replay] capacity".

uint64_t whole_from(const py::handle& object, std::string_view what, uint64_t min = 0,
                    uint64_t max = std::numeric_limits<uint64_t>::max());

// The same for numbers that may be negative, which the caller checks.
int64_t signed_from(const py::handle& object, std::string_view what);

// May be infinite or NaN if the object is: the caller checks the range.
double real_from(const py::handle& object, std::string_view what);
float float_from(const py::handle& object, std::string_view what);

// An array of this dtype (bool, an integer or a float) and of the shape that the object has: the object itself where it
// is such an array and C-contiguous, which costs nothing, else a converted copy. An empty one may be of any dtype.
py::array array_from(const py::object& object, const py::dtype& dtype, std::string_view what);

// Whether it is a number at all, and no complex one.
bool is_real(const py::handle& object);

// As Python shows it, in one line of limited length.
std::string shown(const py::handle& object);

// The name of its type.
std::string type_name(const py::handle& object);

}  // namespace quern::python
