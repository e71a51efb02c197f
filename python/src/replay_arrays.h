// NumPy arrays as the columns of a replay buffer: checked, and copied only where the caller asks for a cast.
#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "module.h"
#include "replay/schema.h"

namespace quern::python {

// The columns of a buffer with their NumPy dtypes and Python names, created once.
class ColumnTypes {
 public:
  explicit ColumnTypes(const replay::Schema& schema);

  // Rows to add, from a dict by column name. It must contain exactly the buffer's columns. Each array must be
  // C-contiguous and have the column's dtype and shape, after a first dimension that is the same for all; otherwise
  // Error names the column, expected, found and what to pass instead. With `cast`, arrays are converted as array_from()
  // does. Values may be dicts: {"obs": {"image": ...}} is the column "obs.image". The pointers are valid as long as the
  // arrays in `keep`.
  struct Rows {
    std::vector<const std::byte*> columns;
    size_t rows = 0;
    std::vector<py::object> keep;
  };
  Rows rows_of(const py::dict& arrays, bool cast, std::string_view where) const;

  // The same for one row, without the first dimension. Also accepts numbers and lists, which are copied.
  Rows row_of(const py::dict& values, bool cast, std::string_view where) const;

  // Arrays of the shape (lead..., shape of the column): those in `out` (a dict, perhaps of dicts; null pointers for
  // columns it omits), which must also be writable, or new arrays of the `wanted` columns if it is None.
  struct OutputArrays {
    std::vector<std::byte*> columns;
    py::dict arrays;
  };
  using Lead = std::vector<py::ssize_t>;
  OutputArrays outputs_in(const py::object& out, const Lead& lead, std::string_view where,
                          const std::vector<bool>& wanted) const;
  OutputArrays outputs_in(const py::object& out, const Lead& lead, std::string_view where) const {
    return outputs_in(out, lead, where, every());
  }

  // Which columns a list of names selects: "obs" also selects all columns "obs.*". None: every column.
  std::vector<bool> selected(const py::object& names, std::string_view where) const;
  std::vector<bool> every() const { return std::vector<bool>(columns_.size(), true); }
  size_t index_of(const py::object& name, std::string_view where) const;

  py::dict to_dict() const;  // {name: Column}

 private:
  py::object get(const py::dict& arrays, size_t column) const;
  py::array checked_array(py::object found, size_t column, size_t first_dimensions, bool cast,
                          std::string_view where) const;
  enum class Given { kOneRow, kRows, kSome };
  void check_names(const py::dict& arrays, Given given, std::string_view where) const;
  void check(const py::array& array, size_t column, size_t first_dimensions, std::string_view where) const;

  std::vector<replay::Column> columns_;
  std::vector<py::str> names_;
  std::vector<py::dtype> dtypes_;
};

// A schema from {name: dtype}, {name: (dtype, shape)}, {name: Column} or {name: {...}}, whose columns are "name.inner".
replay::Schema schema_from(const py::dict& columns);

// {"a": {"b": x}} as {"a.b": x}; the dict itself if it has no inner dicts. Error for a name that comes twice.
py::dict flattened(const py::dict& nested, std::string_view where);

// The opposite: {"a.b": x} as {"a": {"b": x}}, of the names that begin with `prefix`, without it. A name that is also
// the beginning of another one ("a" and "a.b") stays as it is.
py::dict nested_from(const py::dict& flat, std::string_view prefix = {});
// An array of `flat`, or the dict of those whose names begin with this one and a dot. Throws KeyError if there is none.
py::object nested_item(const py::dict& flat, const py::object& name);

// quern.Column
void bind_column(py::module_& module);

}  // namespace quern::python
