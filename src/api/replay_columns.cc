#include "api/replay_columns.h"

#include <filesystem>

#include "core/error.h"
#include "core/text.h"

namespace quern::api {

replay::Schema schema_from(const std::vector<Column>& columns) {
  std::vector<replay::Column> found;
  for (const Column& column : columns) {
    found.push_back({.name = column.name,
                     .dtype = replay::dtype_named(column.dtype),
                     .shape = column.shape,
                     .encoding = replay::encoding_named(column.encoding),
                     .max_nonzero = column.max_nonzero});
  }
  return replay::Schema(std::move(found));
}

std::vector<Column> columns_of(const replay::Schema& schema) {
  std::vector<Column> columns;
  for (const replay::Column& column : schema.columns()) {
    columns.push_back({.name = column.name,
                       .dtype = std::string(replay::name_of(column.dtype)),
                       .shape = column.shape,
                       .encoding = std::string(replay::name_of(column.encoding)),
                       .max_nonzero = column.max_nonzero});
  }
  return columns;
}

replay::Storage storage_from(const ReplayStorage& storage) {
  if (!storage.shared.empty() && !storage.file.empty()) {
    throw Error("[replay] storage: expected shared memory or a file, found both");
  }
  if (!storage.shared.empty()) return replay::Storage::in_shared(storage.shared);
  if (!storage.file.empty()) return replay::Storage::in_file(std::filesystem::absolute(storage.file).string());
  return replay::Storage::in_private();
}

bool same_dtype(std::string_view column, std::string_view values) {
  return values == column || (column == "float16" && values == "uint16");
}

RowArrays rows_from(const replay::Schema& schema, const ColumnValues& values, std::string_view function) {
  RowArrays arrays{.columns = std::vector<const std::byte*>(schema.columns().size()), .rows = 0};
  if (values.size() != schema.columns().size()) {
    throw Error("[replay] {}: expected {} columns, found {}", function, schema.columns().size(), values.size());
  }
  std::vector<bool> given(schema.columns().size());
  for (const NamedValues& one : values) {
    const size_t index = schema.index_of(one.column());
    const replay::Column& column = schema.columns()[index];
    const auto fail = [&](const std::string& expected, const std::string& found) {
      throw Error("[replay] {}: column {}: expected {}, found {}", function, in_quotes(column.name), expected, found);
    };
    if (given[index]) fail("it once", "it twice");
    if (!same_dtype(replay::name_of(column.dtype), one.dtype())) fail(column.description(), std::string(one.dtype()));
    const size_t rows = one.bytes().size() / column.value_bytes();
    if (one.bytes().size() % column.value_bytes() != 0) {
      const size_t number = replay::size_of(column.dtype);
      fail(fmt::format("a multiple of {} values", column.elements()), fmt::format("{}", one.bytes().size() / number));
    }
    if (&one != values.begin() && rows != arrays.rows) {
      fail(fmt::format("{} rows, as in the columns before", arrays.rows), fmt::format("{}", rows));
    }
    given[index] = true;
    arrays.columns[index] = one.bytes().data();
    arrays.rows = rows;
  }
  return arrays;
}

}  // namespace quern::api
