#include "replay_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "numbers.h"
#include "replay_docs.h"
#include "texts.h"

namespace quern::python {
namespace {

using replay::Column;
using replay::Schema;

std::string shape_text(const py::ssize_t* shape, size_t dimensions) {
  std::string text = "(";
  for (size_t i = 0; i < dimensions; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + (dimensions == 1 ? ",)" : ")");
}

// "float32 (rows, 8, 8)", after as many dimensions that the call determines: "float32 (rows, length, 8, 8)".
std::string expected_text(const Column& column, size_t first_dimensions) {
  std::vector<std::string> extents;
  for (size_t i = 0; i < first_dimensions; ++i) extents.emplace_back(i == 0 ? "rows" : "length");
  for (const size_t extent : column.shape) extents.push_back(std::to_string(extent));
  return fmt::format("{} ({}{}", name_of(column.dtype), fmt::join(extents, ", "), extents.size() == 1 ? ",)" : ")");
}

// What to write instead of an array of another dtype, or one that is not contiguous.
std::string advice(const Column& column, std::string_view where) {
  const bool plain = PyUnicode_IsIdentifier(py::str(column.name).ptr()) == 1;
  return fmt::format("; pass np.ascontiguousarray({}, dtype=np.{}){}", plain ? column.name : "x", name_of(column.dtype),
                     where.starts_with("add") ? ", or cast=True" : "");
}

bool is_number(const py::array& array) {
  return std::string_view("biuf").find(array.dtype().kind()) != std::string_view::npos;
}

std::string found_text(const py::array& array) {
  return fmt::format("{} {}", py::str(array.dtype()).cast<std::string>(),
                     shape_text(array.shape(), static_cast<size_t>(array.ndim())));
}

bool same_shape(const py::array& array, const Column& column, size_t first) {
  if (static_cast<size_t>(array.ndim()) != first + column.shape.size()) return false;
  for (size_t i = 0; i < column.shape.size(); ++i) {
    if (static_cast<size_t>(array.shape(static_cast<py::ssize_t>(first + i))) != column.shape[i]) return false;
  }
  return true;
}

// An integer or a sequence of integers.
std::vector<size_t> shape_from(const py::handle& object, std::string_view column) {
  const std::string what = fmt::format("[replay] column {}: shape", in_quotes(column));
  std::vector<size_t> shape;
  if (PyIndex_Check(object.ptr()) != 0 && py::hasattr(object, "__len__") == false) {
    shape.push_back(whole_from(object, what, 1));
  } else if (!py::hasattr(object, "__iter__")) {
    throw Error("{}: expected whole numbers from 1, found {}", what, shown(object));
  } else {
    for (const py::handle& length : py::reinterpret_borrow<py::object>(object)) {
      shape.push_back(whole_from(length, what, 1));
    }
  }
  return shape;
}

// Anything NumPy accepts as a dtype except None, which NumPy takes as float64.
replay::DType dtype_from(const py::handle& object, std::string_view column) {
  std::string name = text_from(py::str(object), fmt::format("[replay] column {}: dtype", in_quotes(column)));
  try {
    if (!object.is_none()) {
      name = py::dtype::from_args(py::reinterpret_borrow<py::object>(object)).attr("name").cast<std::string>();
    }
  } catch (const py::error_already_set&) {  // not a dtype: rejected below, with its original text
  }
  try {
    return replay::dtype_named(name);
  } catch (const Error& error) {
    constexpr std::string_view kPlace = "[replay] ";
    throw Error("{}column {}: {}", kPlace, in_quotes(column), std::string_view(error.what()).substr(kPlace.size()));
  }
}

Column column_from(const std::string& name, const py::handle& object) {
  Column column;
  if (py::isinstance<Column>(object)) {
    column = object.cast<Column>();
  } else if (py::isinstance<py::tuple>(object)) {
    const auto pair = py::reinterpret_borrow<py::tuple>(object);
    if (pair.size() != 2) {
      throw Error("[replay] column {}: expected (dtype, shape), found {} values", in_quotes(name), pair.size());
    }
    column.dtype = dtype_from(pair[0], name);
    column.shape = shape_from(pair[1], name);
  } else {
    column.dtype = dtype_from(object, name);
  }
  column.name = name;
  return column;
}

std::string repr(const Column& column) {
  std::string text = fmt::format("quern.Column('{}', ({}{}", name_of(column.dtype), fmt::join(column.shape, ", "),
                                 column.shape.size() == 1 ? ",)" : ")");
  if (column.encoding != replay::Encoding::kRaw) text += fmt::format(", encoding='{}'", name_of(column.encoding));
  if (column.encoding == replay::Encoding::kSparse) text += fmt::format(", max_nonzero={}", column.max_nonzero);
  return text + ")";
}

// A column's name has at most 255 bytes and every level adds a dot, so a deeper dict names no column. A dict that
// contains itself has no end.
constexpr int kMaxDepth = 255;

py::dict flattened(const py::dict& nested, std::string_view where, int depth) {
  if (depth > kMaxDepth)
    throw Error("[replay] {}: expected at most {} dicts in each other, found more", where, kMaxDepth);
  bool has_inner = false;
  for (const auto& [name, value] : nested) has_inner = has_inner || PyDict_Check(value.ptr()) != 0;
  if (!has_inner) return nested;
  py::dict flat;
  const auto insert = [&](const py::object& name, const py::handle& value) {
    if (flat.contains(name)) {
      throw Error("[replay] {}: column {}: expected it once, found it twice: as a name with a dot and in a dict", where,
                  in_quotes(py::str(name).cast<std::string>()));
    }
    flat[name] = value;
  };
  for (const auto& [name, value] : nested) {
    if (PyDict_Check(value.ptr()) == 0) {
      insert(py::reinterpret_borrow<py::object>(name), value);
      continue;
    }
    if (!py::isinstance<py::str>(name))
      throw Error("[replay] {}: expected names of columns, found {}", where, shown(name));
    if (PyDict_Size(value.ptr()) == 0) {
      throw Error("[replay] {}: column {}: expected columns in the dict, found none", where,
                  in_quotes(text_from(name, where)));
    }
    for (const auto& [inner, object] : flattened(py::reinterpret_borrow<py::dict>(value), where, depth + 1)) {
      if (!py::isinstance<py::str>(inner) || py::len(inner) == 0) {
        throw Error("[replay] {}: expected names of columns, found {}", where, shown(inner));
      }
      insert(py::reinterpret_borrow<py::object>(name) + py::str(".") + py::reinterpret_borrow<py::object>(inner),
             object);
    }
  }
  return flat;
}

}  // namespace

py::dict flattened(const py::dict& nested, std::string_view where) { return flattened(nested, where, 0); }

py::dict nested_from(const py::dict& flat, std::string_view prefix) {
  py::dict result;
  for (const auto& [key, value] : flat) {
    const std::string name = py::str(key).cast<std::string>();
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const size_t dot = rest.find('.');
    const bool inner =
        dot != std::string::npos && dot > 0 && !flat.contains(py::str(name.substr(0, prefix.size() + dot)));
    if (!inner) {
      result[py::str(rest)] = value;
    } else if (const py::str outer(rest.substr(0, dot)); !result.contains(outer)) {
      result[outer] = nested_from(flat, name.substr(0, prefix.size() + dot + 1));
    }
  }
  return result;
}

py::object nested_item(const py::dict& flat, const py::object& name) {
  if (flat.contains(name) || !py::isinstance<py::str>(name)) return flat[name];
  py::dict inner = nested_from(flat, name.cast<std::string>() + ".");
  if (inner.empty()) return flat[name];  // KeyError
  return inner;
}

namespace {

// Error if a column has the name of a group, which nested_from() could not tell apart.
void check_groups(const std::vector<Column>& columns) {
  for (const Column& group : columns) {
    for (const Column& column : columns) {
      if (!column.name.starts_with(group.name + ".")) continue;
      throw Error("[replay] columns: expected {} to be a column or a dict of columns, found both: {}",
                  in_quotes(group.name), in_quotes(column.name));
    }
  }
}

}  // namespace

Schema schema_from(const py::dict& columns) {
  std::vector<Column> found;
  for (const auto& [name, object] : flattened(columns, "columns")) {
    if (!py::isinstance<py::str>(name)) {
      throw Error("[replay] expected names of columns, found {}", shown(name));
    }
    found.push_back(column_from(text_from(name, "[replay] columns"), object));
  }
  check_groups(found);
  return Schema(std::move(found));
}

ColumnTypes::ColumnTypes(const Schema& schema) : columns_(schema.columns()) {
  for (const Column& column : columns_) {
    names_.push_back(py::reinterpret_steal<py::str>(PyUnicode_InternFromString(column.name.c_str())));
    dtypes_.emplace_back(std::string(name_of(column.dtype)));
  }
}

py::object ColumnTypes::get(const py::dict& arrays, size_t column) const {
  PyObject* const found = PyDict_GetItemWithError(arrays.ptr(), names_[column].ptr());
  return py::reinterpret_borrow<py::object>(found);
}

void ColumnTypes::check_names(const py::dict& arrays, Given given, std::string_view where) const {
  size_t known = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (get(arrays, c)) {
      ++known;
    } else if (given != Given::kSome) {
      throw Error("[replay] {}: column {}: expected {}, found nothing", where, in_quotes(columns_[c].name),
                  expected_text(columns_[c], given == Given::kRows ? 1 : 0));
    }
  }
  if (known == arrays.size()) return;
  for (const auto& [name, array] : arrays) {
    const std::string text = text_from(py::str(name), fmt::format("[replay] {}: columns", where));
    bool is_one = false;
    for (const Column& column : columns_) is_one = is_one || column.name == text;
    if (is_one) continue;
    std::vector<std::string_view> names;
    for (const Column& column : columns_) names.push_back(column.name);
    throw Error("[replay] {}: expected the columns {}, found also {}", where, fmt::join(names, ", "), in_quotes(text));
  }
}

void ColumnTypes::check(const py::array& array, size_t column, size_t first_dimensions, std::string_view where) const {
  const Column& expected = columns_[column];
  const bool right_shape = same_shape(array, expected, first_dimensions);
  const bool right_dtype = array.dtype().equal(dtypes_[column]);
  if (!right_dtype || !right_shape) {
    throw Error("[replay] {}: column {}: expected {}, found {}{}", where, in_quotes(expected.name),
                expected_text(expected, first_dimensions), found_text(array),
                right_shape && is_number(array) ? advice(expected, where) : "");
  }
  if ((array.flags() & py::array::c_style) == 0) {
    throw Error("[replay] {}: column {}: expected a C-contiguous array, found one that is not{}", where,
                in_quotes(expected.name), advice(expected, where));
  }
}

py::array ColumnTypes::checked_array(py::object found, size_t column, size_t first_dimensions, bool cast,
                                     std::string_view where) const {
  if (py::isinstance<py::array>(found) && py::hasattr(found, "mask")) {
    throw Error(
        "[replay] {}: column {}: expected an array without a mask, found a masked array; use array.filled(value)",
        where, in_quotes(columns_[column].name));
  }
  if (cast) {
    found = array_from(found, dtypes_[column],
                       fmt::format("[replay] {}: column {}", where, in_quotes(columns_[column].name)));
  }
  auto array = py::reinterpret_borrow<py::array>(found);
  check(array, column, first_dimensions, where);
  return array;
}

ColumnTypes::Rows ColumnTypes::rows_of(const py::dict& given, bool cast, std::string_view where) const {
  const py::dict arrays = flattened(given, where);
  check_names(arrays, Given::kRows, where);
  Rows result;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const py::object found = get(arrays, c);
    if (!py::isinstance<py::array>(found) && !cast) {
      throw Error("[replay] {}: column {}: expected a NumPy array of {}, found {}", where, in_quotes(columns_[c].name),
                  expected_text(columns_[c], 1), type_name(found));
    }
    const py::array array = checked_array(found, c, 1, cast, where);
    const auto rows = static_cast<size_t>(array.shape(0));
    if (c > 0 && rows != result.rows) {
      throw Error("[replay] {}: column {}: expected {} rows, as in {}, found {}", where, in_quotes(columns_[c].name),
                  result.rows, in_quotes(columns_[0].name), rows);
    }
    result.rows = rows;
    result.columns.push_back(static_cast<const std::byte*>(array.data()));
    result.keep.push_back(array);
  }
  return result;
}

ColumnTypes::Rows ColumnTypes::row_of(const py::dict& given, bool cast, std::string_view where) const {
  const py::dict values = flattened(given, where);
  check_names(values, Given::kOneRow, where);
  Rows result{.columns = {}, .rows = 1, .keep = {}};
  for (size_t c = 0; c < columns_.size(); ++c) {
    const py::object found = get(values, c);
    const bool convert = cast || !py::isinstance<py::array>(found);  // arrays are not converted unless asked for
    const py::array array = checked_array(found, c, 0, convert, where);
    result.columns.push_back(static_cast<const std::byte*>(array.data()));
    result.keep.push_back(array);
  }
  return result;
}

std::vector<bool> ColumnTypes::selected(const py::object& names, std::string_view where) const {
  if (names.is_none()) return every();
  std::vector<bool> wanted(columns_.size());
  if (py::isinstance<py::str>(names) || !py::hasattr(names, "__iter__")) {
    throw Error("[replay] {}: expected a list of names of columns, found {}", where, shown(names));
  }
  for (const py::handle& name : names) {
    const std::string text = text_from(py::str(name), where);
    bool found = false;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].name != text && !columns_[c].name.starts_with(text + ".")) continue;
      wanted[c] = found = true;
    }
    if (!found) index_of(py::reinterpret_borrow<py::object>(name), where);  // throws
  }
  return wanted;
}

size_t ColumnTypes::index_of(const py::object& name, std::string_view where) const {
  const std::string text = text_from(py::str(name), where);
  std::vector<std::string_view> known;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].name == text) return c;
    known.push_back(columns_[c].name);
  }
  throw Error("[replay] {}: expected one of the columns {}, found {}", where, fmt::join(known, ", "), in_quotes(text));
}

ColumnTypes::OutputArrays ColumnTypes::outputs_in(const py::object& out, const Lead& lead, std::string_view where,
                                                  const std::vector<bool>& wanted) const {
  OutputArrays result;
  if (!out.is_none() && !py::isinstance<py::dict>(out)) {
    throw Error("[replay] {}: out: expected a dict of arrays, found {}", where, type_name(out));
  }
  if (!out.is_none()) {
    // The copy keeps the arrays alive: another thread may clear the caller's dict while the GIL is released.
    result.arrays = flattened(py::reinterpret_steal<py::dict>(PyDict_Copy(out.ptr())), where);
    check_names(result.arrays, Given::kSome, where);
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    py::object found = out.is_none() ? py::object() : get(result.arrays, c);
    if (out.is_none() && wanted[c]) {
      Lead shape = lead;
      for (const size_t length : column.shape) shape.push_back(static_cast<py::ssize_t>(length));
      found = py::array(dtypes_[c], shape);
      result.arrays[names_[c]] = found;
    }
    if (!found) {
      result.columns.push_back(nullptr);
      continue;
    }
    if (!py::isinstance<py::array>(found)) {
      throw Error("[replay] {}: column {}: expected a NumPy array of {}, found {}", where, in_quotes(column.name),
                  expected_text(column, lead.size()), type_name(found));
    }
    auto array = py::reinterpret_borrow<py::array>(found);
    check(array, c, lead.size(), where);
    if (!std::equal(lead.begin(), lead.end(), array.shape()) || !array.writeable()) {
      const std::string rows = lead.size() == 1 ? fmt::format("{} rows", lead[0])
                                                : fmt::format("{} rows", shape_text(lead.data(), lead.size()));
      throw Error("[replay] {}: column {}: expected a writable array of {}, found {}{} rows", where,
                  in_quotes(column.name), rows, array.writeable() ? "" : "a read-only one of ",
                  lead.size() == 1 ? std::to_string(array.shape(0)) : shape_text(array.shape(), lead.size()));
    }
    result.columns.push_back(static_cast<std::byte*>(array.mutable_data()));
  }
  return result;
}

py::dict ColumnTypes::to_dict() const {
  py::dict result;
  for (size_t c = 0; c < columns_.size(); ++c) result[names_[c]] = columns_[c];
  return result;
}

void bind_column(py::module_& module) {
  py::class_<Column>(module, "Column", kColumnDoc)
      .def(py::init([](const py::object& dtype, const py::object& shape, const Text& encoding,
                       const py::object& max_nonzero) {
             Column column = column_from("", py::make_tuple(dtype, shape));
             column.encoding = replay::encoding_named(encoding.value);
             column.max_nonzero = whole_from(max_nonzero, "[replay] column: max_nonzero");
             return column;
           }),
           py::arg("dtype") = "float32", py::arg("shape") = py::tuple(), py::arg("encoding") = "raw",
           py::arg("max_nonzero") = 0, kColumnInitDoc)
      .def_property_readonly(
          "dtype", [](const Column& column) { return py::dtype(std::string(name_of(column.dtype))); }, kColumnDtypeDoc)
      .def_property_readonly(
          "shape", [](const Column& column) { return py::tuple(py::cast(column.shape)); }, kColumnShapeDoc)
      .def_property_readonly(
          "encoding", [](const Column& column) { return std::string(name_of(column.encoding)); }, kColumnEncodingDoc)
      .def_readonly("max_nonzero", &Column::max_nonzero, kColumnMaxNonzeroDoc)
      .def_property_readonly("stored_bytes", &Column::stored_bytes, kColumnStoredBytesDoc)
      .def(
          "__eq__",
          [](const Column& a, const Column& b) {  // ignores the name, which is the key in the dict of columns
            return std::tie(a.dtype, a.shape, a.encoding, a.max_nonzero) ==
                   std::tie(b.dtype, b.shape, b.encoding, b.max_nonzero);
          },
          py::is_operator())
      .def("__repr__", &repr);
}

}  // namespace quern::python
