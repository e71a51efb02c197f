#include "numbers.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace quern::python {
namespace {

// An int for anything with __index__; nullopt otherwise.
std::optional<py::object> as_int(const py::handle& object) {
  if (PyLong_Check(object.ptr())) return py::reinterpret_borrow<py::object>(object);
  if (PyIndex_Check(object.ptr()) == 0) return std::nullopt;
  auto number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (number) return number;
  PyErr_Clear();  // such as an array of several numbers
  return std::nullopt;
}

// nullopt when it does not fit.
std::optional<uint64_t> unsigned_value(const py::object& number) {
  const uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
  if (value != static_cast<uint64_t>(-1) || PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();  // OverflowError
  return std::nullopt;
}

std::optional<int64_t> signed_value(const py::object& number) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return overflow == 0 ? std::optional(value) : std::nullopt;
}

bool is_negative(const py::object& number) {
  return PyObject_RichCompareBool(number.ptr(), py::int_(0).ptr(), Py_LT) == 1;
}

// The double equal to this int; nullopt if there is none.
std::optional<double> exact_double(const py::object& number) {
  const double value = PyLong_AsDouble(number.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();  // OverflowError
    return std::nullopt;
  }
  const auto back = py::reinterpret_steal<py::object>(PyLong_FromDouble(value));
  return PyObject_RichCompareBool(back.ptr(), number.ptr(), Py_EQ) == 1 ? std::optional(value) : std::nullopt;
}

// A finite number at or above this rounds to infinity: half an ulp above the largest finite value.
constexpr double kFloatOverflow = 0x1.ffffffp127;
constexpr double kHalfOverflow = 65520;

// The range of a dtype's values.
struct Limits {
  char kind;         // b, i, u or f, as in NumPy
  int64_t min = 0;   // of integers
  uint64_t max = 0;  // of integers below 2^64
  int digits = 0;    // of floats: bits of the mantissa
  double overflow = std::numeric_limits<double>::infinity();

  bool holds(uint64_t magnitude) const {
    if (magnitude > max) return false;
    return kind != 'f' || magnitude == 0 ||
           static_cast<int>(std::bit_width(magnitude)) - std::countr_zero(magnitude) <= digits;
  }
  bool holds(bool negative, uint64_t magnitude) const {
    if (!negative || kind == 'f') return holds(magnitude);
    return magnitude <= uint64_t{0} - static_cast<uint64_t>(min);
  }
  bool holds(int64_t value) const {
    const auto bits = static_cast<uint64_t>(value);
    return holds(value < 0, value < 0 ? uint64_t{0} - bits : bits);
  }
  bool holds(double value) const { return !std::isfinite(value) || std::abs(value) < overflow; }
  bool holds_exactly(double large) const {
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(large, &exponent), digits);
    return holds(large) && mantissa == std::trunc(mantissa);
  }
};

Limits limits_of(const py::dtype& dtype) {
  const char kind = dtype.kind();
  const auto bits = static_cast<int>(8 * dtype.itemsize());
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  if (kind == 'b') return {.kind = kind, .max = 1};
  if (kind == 'u') return {.kind = kind, .max = kAll >> (64 - bits)};
  if (kind == 'i') {
    const uint64_t max = kAll >> (65 - bits);
    return {.kind = kind, .min = -1 - static_cast<int64_t>(max), .max = max};
  }
  if (bits == 16) return {.kind = kind, .max = 65504, .digits = 11, .overflow = kHalfOverflow};
  if (bits == 32) return {.kind = kind, .max = kAll, .digits = 24, .overflow = kFloatOverflow};
  return {.kind = kind, .max = kAll, .digits = 53};
}

// Whether int64, uint64 or double can represent all of its values; false for NumPy's longdouble.
bool is_number(const py::dtype& dtype) {
  const char kind = dtype.kind();
  return kind == 'b' || kind == 'i' || kind == 'u' || (kind == 'f' && dtype.itemsize() <= 8);
}

std::string name_of(const py::dtype& dtype) { return py::str(py::handle(dtype)).cast<std::string>(); }

[[noreturn]] void refuse(std::string_view what, const py::dtype& dtype, const std::string& found) {
  throw Error("{}: expected values of {}, found {}", what, name_of(dtype), found);
}

std::string place_text(size_t index, size_t count) {
  return count == 1 ? std::string() : fmt::format(" at element {}", index);
}

// For an array whose values all fit in `Wide`.
template <typename Wide>
void check_values(const py::array& given, const py::dtype& dtype, std::string_view what) {
  const Limits limits = limits_of(dtype);
  const auto wide = py::array_t<Wide, py::array::c_style | py::array::forcecast>::ensure(given);
  if (!wide) throw py::error_already_set();
  const std::span<const Wide> values(wide.data(), static_cast<size_t>(wide.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (limits.holds(values[i])) continue;
    refuse(what, dtype, fmt::format("{}{}", values[i], place_text(i, values.size())));
  }
}

bool is_in(const Limits& limits, const py::object& item) {
  if (const auto whole = as_int(item)) {
    const auto magnitude = unsigned_value(py::reinterpret_steal<py::object>(PyNumber_Absolute(whole->ptr())));
    if (magnitude) return limits.holds(is_negative(*whole), *magnitude);
    const auto large = limits.kind == 'f' ? exact_double(*whole) : std::nullopt;
    return large && limits.holds_exactly(*large);
  }
  if (limits.kind != 'f' || !is_real(item)) return false;
  const double value = PyFloat_AsDouble(item.ptr());
  if (PyErr_Occurred() == nullptr) return limits.holds(value);
  PyErr_Clear();  // a Fraction beyond all floats
  return false;
}

// Converts the numbers of a list one by one, as given. NumPy would convert [2**63, 1] to floats, which changes large
// numbers, and keep number types that it does not know, such as Fraction, as objects.
py::array from_items(const py::object& given, const py::dtype& dtype, std::string_view what) {
  const Limits limits = limits_of(dtype);
  const py::module_ numpy = py::module_::import("numpy");
  const py::object objects = numpy.attr("asarray")(given, "O");
  const py::list items = objects.attr("ravel")().attr("tolist")();
  py::list numbers;
  for (size_t i = 0; i < items.size(); ++i) {
    const py::object item = items[i];
    if (!is_in(limits, item)) refuse(what, dtype, shown(item) + place_text(i, items.size()));
    numbers.append(as_int(item).value_or(item));
  }
  return numpy.attr("array")(numbers, dtype).attr("reshape")(objects.attr("shape"));
}

// Whether a (nested) list has an element that is not a float: NumPy would convert [2**53 + 1, 0.5] to floats, which
// changes the first. The recursion is at most as deep as NumPy's arrays, since NumPy has made one from the list.
bool has_other_than_floats(const py::handle& object) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) return PyFloat_Check(object.ptr()) == 0;
  for (const py::handle item : object) {
    if (has_other_than_floats(item)) return true;
  }
  return false;
}

void check_array(const py::array& given, const py::dtype& dtype, std::string_view what) {
  const char kind = given.dtype().kind();
  if (!is_number(given.dtype()) || (kind == 'f' && dtype.kind() != 'f')) refuse(what, dtype, name_of(given.dtype()));
  if (kind == 'i') check_values<int64_t>(given, dtype, what);
  if (kind == 'u') check_values<uint64_t>(given, dtype, what);
  if (kind == 'f') check_values<double>(given, dtype, what);
}

}  // namespace

std::string shown(const py::handle& object) {
  constexpr size_t kMaxLength = 40;
  std::string text;
  try {
    text = py::repr(object).cast<std::string>();
  } catch (const py::error_already_set&) {  // an int of thousands of digits
    return "an object of type " + type_name(object);
  } catch (const py::cast_error&) {  // a __repr__ that does not return a str
    return "an object of type " + type_name(object);
  }
  const bool plain = text.size() <= kMaxLength && text.find('\n') == std::string::npos;
  return plain ? text : in_quotes(text, kMaxLength);
}

std::string type_name(const py::handle& object) {
  return py::str(py::type::of(object).attr("__name__")).cast<std::string>();
}

bool is_real(const py::handle& object) {
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) return true;
  if (py::hasattr(object, "dtype")) {  // NumPy's complex numbers have __float__ too, which drops the imaginary part
    const auto array = py::array::ensure(object);
    if (!array) PyErr_Clear();
    return array && array.ndim() == 0 && is_number(array.dtype());
  }
  const PyNumberMethods* methods = Py_TYPE(object.ptr())->tp_as_number;
  return methods != nullptr && (methods->nb_float != nullptr || methods->nb_index != nullptr);
}

uint64_t whole_from(const py::handle& object, std::string_view what, uint64_t min, uint64_t max) {
  const auto number = as_int(object);
  const auto value = number ? unsigned_value(*number) : std::nullopt;
  if (value && *value >= min && *value <= max) return *value;
  const bool above = number && (value ? *value > max : !is_negative(*number));
  const bool bounded = above || max != std::numeric_limits<uint64_t>::max();
  throw Error("{}: expected {}{}{}, found {}", what, number && bounded ? "" : "a whole number from ", min,
              bounded ? fmt::format(" to {}", max) : "", shown(object));
}

int64_t signed_from(const py::handle& object, std::string_view what) {
  const auto number = as_int(object);
  if (!number) throw Error("{}: expected a whole number, found {}", what, shown(object));
  const auto value = signed_value(*number);
  if (!value) throw Error("{}: expected a whole number of 64 bits, found {}", what, shown(object));
  return *value;
}

double real_from(const py::handle& object, std::string_view what) {
  if (PyFloat_Check(object.ptr())) return PyFloat_AS_DOUBLE(object.ptr());
  if (const auto number = as_int(object)) {
    const auto value = exact_double(*number);
    if (value) return *value;
    throw Error("{}: expected a number that is a float64, found {}", what, shown(object));
  }
  if (!is_real(object)) throw Error("{}: expected a number, found {}", what, shown(object));
  const double value = PyFloat_AsDouble(object.ptr());
  if (PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();  // a Fraction beyond all floats
  throw Error("{}: expected a number that is a float64, found {}", what, shown(object));
}

float float_from(const py::handle& object, std::string_view what) {
  const double value = real_from(object, what);
  if (std::isfinite(value) && std::abs(value) >= kFloatOverflow) {
    throw Error("{}: expected a number of at most {:.6g}, found {}", what, std::numeric_limits<float>::max(), value);
  }
  return static_cast<float>(value);
}

py::array array_from(const py::object& object, const py::dtype& dtype, std::string_view what) {
  auto given = py::array::ensure(object);
  if (!given) {
    PyErr_Clear();  // lists of different lengths
    refuse(what, dtype, shown(object));
  }
  const bool listed = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  if (listed && given.dtype().kind() == 'f' && has_other_than_floats(object)) return from_items(object, dtype, what);
  const bool same = given.dtype().equal(dtype);
  if (same && (given.flags() & py::array::c_style) != 0) return given;
  if (!same && given.size() > 0) {
    const bool fits = is_number(given.dtype()) && (given.dtype().kind() != 'f' || dtype.kind() == 'f');
    if (!fits && !py::isinstance<py::array>(object)) return from_items(object, dtype, what);
    check_array(given, dtype, what);
  }
  return given.attr("astype")(dtype, "C");
}

}  // namespace quern::python
