#include "selfplay/rows.h"

#include <array>
#include <cstddef>

namespace quern::selfplay {

replay::Schema row_schema(const games::GameSpec& spec) {
  return replay::Schema({{.name = "planes", .shape = {spec.planes, spec.rows, spec.columns}},
                         {.name = "policy", .shape = {spec.actions}},
                         {.name = "outcome", .shape = {3}}});
}

void expect_rows_of(const games::GameSpec& spec, const replay::ReplayBuffer& buffer) {
  row_schema(spec).expect_same(buffer.schema(), "[selfplay] buffer for " + spec.name);
}

void add_rows(replay::ReplayBuffer& buffer, const GameRecord& record, const replay::Wait& wait) {
  if (record.rows == 0) return;
  const auto bytes = [](const std::vector<float>& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  const std::array columns = {bytes(record.planes), bytes(record.policies), bytes(record.outcomes)};
  buffer.add(columns, record.rows, {}, wait);
}

}  // namespace quern::selfplay
