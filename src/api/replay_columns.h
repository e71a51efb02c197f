// Converts columns and values between the public interface and the replay buffer.
#pragma once

#include <quern/replay.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "replay/memory.h"
#include "replay/schema.h"

namespace quern::api {

replay::Schema schema_from(const std::vector<Column>& columns);
std::vector<Column> columns_of(const replay::Schema& schema);

// Error when both are given.
replay::Storage storage_from(const ReplayStorage& storage);

// The caller's arrays in the order of the schema.
struct RowArrays {
  std::vector<const std::byte*> columns;
  size_t rows = 0;
};

// Error when a column is missing, unknown or given twice, when its type differs, or when the columns have different
// numbers of rows. `function` is for messages.
RowArrays rows_from(const replay::Schema& schema, const ColumnValues& values, std::string_view function);

// Whether the values of a column have this dtype; those of float16 are uint16.
bool same_dtype(std::string_view column, std::string_view values);

}  // namespace quern::api
