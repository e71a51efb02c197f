#include "selfplay/rows.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace quern::selfplay {

replay::Schema row_schema(const games::GameSpec& spec) {
  return replay::Schema({{.name = "planes", .shape = {spec.planes, spec.rows, spec.columns}},
                         {.name = "policy", .shape = {spec.actions}},
                         {.name = "outcome", .shape = {3}}});
}

void expect_rows_of(const games::GameSpec& spec, const replay::ReplayBuffer& buffer) {
  std::vector<replay::Column> found = buffer.schema().columns();
  for (replay::Column& column : found) column.encoding = replay::Encoding::kRaw, column.max_nonzero = 0;
  row_schema(spec).expect_same(replay::Schema(std::move(found)), "[selfplay] buffer for " + spec.name);
}

void add_rows(replay::ReplayBuffer& buffer, const GameRecord& record, const replay::Wait& wait) {
  if (record.rows == 0) return;
  const auto bytes = [](const std::vector<float>& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  const std::array columns = {bytes(record.planes), bytes(record.policies), bytes(record.outcomes)};
  buffer.add(columns, record.rows, {}, wait);
}

}  // namespace quern::selfplay
