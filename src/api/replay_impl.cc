#include "api/replay_impl.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace quern {

replay::BufferOptions api::options_from(const ReplayOptions& options) {
  return {
      .capacity = options.capacity,
      .prioritised = options.prioritised,
      .alpha = options.alpha,
      .limit = {.samples_per_insert = options.samples_per_insert, .minimum = options.min_size, .slack = options.slack},
      .prefault = options.prefault,
      .terminal = options.terminal,
      .truncated = options.truncated};
}

replay::Wait api::wait_from(double timeout) {
  if (std::isnan(timeout)) throw Error("[replay] timeout: expected seconds, found nan");
  return {timeout};
}

namespace {

replay::Rule rule_from(Rule rule) {
  switch (rule) {
    case Rule::kUniform:
      return replay::Rule::kUniform;
    case Rule::kWithoutReplacement:
      return replay::Rule::kWithoutReplacement;
    case Rule::kPrioritised:
      return replay::Rule::kPrioritised;
    case Rule::kRecent:
      return replay::Rule::kRecent;
  }
  throw Error("[replay] sample: rule: expected one of quern::Rule, found {}", static_cast<int>(rule));
}

}  // namespace

std::vector<std::byte*> ReplayBuffer::Impl::prepare(Sample& out, size_t rows,
                                                    std::span<const std::string> names) const {
  std::vector<size_t> wanted;
  for (size_t c = 0; c < columns.size() && names.empty(); ++c) wanted.push_back(c);
  for (const std::string& name : names) wanted.push_back(buffer.schema().index_of(name));
  std::vector<std::byte*> pointers(columns.size());
  out.values_.resize(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    Sample::Values& values = out.values_[i];
    values.column = columns[wanted[i]].name;
    values.dtype = columns[wanted[i]].dtype;
    values.bytes.resize(rows * buffer.value_bytes(wanted[i]));
    pointers[wanted[i]] = values.bytes.data();
  }
  out.ids_.resize(rows);
  out.ages_.resize(rows);
  out.weights_.resize(rows);
  out.mask_.clear();
  return pointers;
}

replay::SampleRequest ReplayBuffer::Impl::request_from(size_t n, const SampleOptions& options, size_t rows_each,
                                                       std::string_view function) const {
  const size_t max_rows = static_cast<size_t>(PTRDIFF_MAX) / buffer.schema().value_bytes();
  if (n > max_rows / std::max<size_t>(rows_each, 1)) {
    throw Error("[replay] {}: n: expected 1 to {}, found {}", function, max_rows / rows_each, n);
  }
  const Rule rule = options.rule.value_or(buffer.options().prioritised ? Rule::kPrioritised : Rule::kUniform);
  return {.rows = n, .rule = rule_from(rule), .half_life = options.half_life, .beta = options.beta};
}

uint64_t ReplayBuffer::Impl::add(const ColumnValues& values, std::optional<float> priority, double timeout,
                                 std::span<replay::Stream> streams) {
  const api::RowArrays arrays = api::rows_from(buffer.schema(), values, "add");
  if (arrays.rows != 1) throw Error("[replay] add: expected the values of one row, found {} rows", arrays.rows);
  const float given = priority.value_or(0);
  return buffer.add(arrays.columns, 1, {&given, priority ? size_t{1} : size_t{0}}, api::wait_from(timeout), streams);
}

std::optional<uint64_t> ReplayBuffer::Impl::add_batch(const ColumnValues& values, std::span<const float> priorities,
                                                      double timeout, std::span<replay::Stream> streams) {
  const api::RowArrays arrays = api::rows_from(buffer.schema(), values, "add_batch");
  const uint64_t id = buffer.add(arrays.columns, arrays.rows, priorities, api::wait_from(timeout), streams);
  if (id == replay::kNoRow) return std::nullopt;
  return id;
}

}  // namespace quern
