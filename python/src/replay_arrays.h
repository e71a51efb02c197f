// NumPy arrays as the columns of a replay buffer: checked, never copied.
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
  // Error names the column, expected and found. The pointers are valid as long as the arrays in `keep`.
  struct Rows {
    std::vector<const std::byte*> columns;
    size_t rows = 0;
    std::vector<py::object> keep;
  };
  Rows rows_of(const py::dict& arrays, std::string_view where) const;

  // The same for one row, without the first dimension. Also accepts numbers and lists, which are copied.
  Rows row_of(const py::dict& values, std::string_view where) const;

  // Arrays for `rows` rows: those in `out` (a dict; null pointers for columns it omits), which must also be writable,
  // or new arrays if it is None.
  struct OutputArrays {
    std::vector<std::byte*> columns;
    py::dict arrays;
  };
  OutputArrays outputs_in(const py::object& out, size_t rows, std::string_view where) const;

  py::dict to_dict() const;  // {name: Column}

 private:
  py::object get(const py::dict& arrays, size_t column) const;
  enum class Given { kOneRow, kRows, kSome };
  void check_names(const py::dict& arrays, Given given, std::string_view where) const;
  void check(const py::array& array, size_t column, size_t first_dimensions, std::string_view where) const;

  std::vector<replay::Column> columns_;
  std::vector<py::str> names_;
  std::vector<py::dtype> dtypes_;
};

// A schema from {name: dtype}, {name: (dtype, shape)} or {name: Column}.
replay::Schema schema_from(const py::dict& columns);

// quern.Column
void bind_column(py::module_& module);

}  // namespace quern::python
