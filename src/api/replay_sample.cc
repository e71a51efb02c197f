#include "api/replay_columns.h"
#include "core/error.h"
#include "core/text.h"

namespace quern {

std::span<const std::byte> Sample::checked(std::string_view column, std::string_view dtype) const {
  for (const Values& values : values_) {
    if (values.column != column) continue;
    if (api::same_dtype(values.dtype, dtype)) return values.bytes;
    throw Error("[replay] sample: column {}: expected values of {}, found a request for {}", in_quotes(column),
                values.dtype, dtype);
  }
  throw Error("[replay] sample: expected the name of a column, found {}", in_quotes(column));
}

}  // namespace quern
