#include <quern/replay.h>

#include <cmath>

#include "api/replay_columns.h"
#include "api/threads.h"
#include "core/error.h"
#include "core/text.h"
#include "replay/npz.h"
#include "replay/shared_sampler.h"
#include "replay/snapshot.h"

namespace quern {
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

replay::Wait wait_from(double timeout) {
  if (std::isnan(timeout)) throw Error("[replay] timeout: expected seconds, found nan");
  return {timeout};
}

SnapshotResult result_from(const replay::SnapshotResult& result) {
  return {.rows = result.rows, .bytes = result.bytes, .skipped = result.skipped};
}

}  // namespace

class ReplayBuffer::Impl {
 public:
  Impl(replay::ReplayBuffer&& its_buffer, std::optional<uint64_t> seed)
      : buffer(std::move(its_buffer)), sampler(buffer, replay::Seed(seed)), columns(api::columns_of(buffer.schema())) {}

  // Makes room for `rows` rows in `out`, reusing its memory.
  std::vector<std::byte*> prepare(Sample& out, size_t rows) const;
  uint64_t add(const api::RowArrays& arrays, std::span<const float> priorities, double timeout);

  replay::ReplayBuffer buffer;
  replay::SharedSampler sampler;
  std::vector<Column> columns;
};

std::vector<std::byte*> ReplayBuffer::Impl::prepare(Sample& out, size_t rows) const {
  std::vector<std::byte*> pointers;
  out.values_.resize(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    Sample::Values& values = out.values_[c];
    values.column = columns[c].name;
    values.dtype = columns[c].dtype;
    values.bytes.resize(rows * buffer.schema().columns()[c].value_bytes());
    pointers.push_back(values.bytes.data());
  }
  out.ids_.resize(rows);
  out.ages_.resize(rows);
  out.weights_.resize(rows);
  return pointers;
}

uint64_t ReplayBuffer::Impl::add(const api::RowArrays& arrays, std::span<const float> priorities, double timeout) {
  return buffer.add(arrays.columns, arrays.rows, priorities, wait_from(timeout));
}

ReplayBuffer::ReplayBuffer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ReplayBuffer::ReplayBuffer(ReplayBuffer&&) noexcept = default;
ReplayBuffer& ReplayBuffer::operator=(ReplayBuffer&&) noexcept = default;
ReplayBuffer::~ReplayBuffer() = default;

ReplayBuffer::ReplayBuffer(const std::vector<Column>& columns, const ReplayOptions& options)
    : impl_(std::make_unique<Impl>(
          replay::ReplayBuffer::create(api::schema_from(columns),
                                       {.capacity = options.capacity,
                                        .prioritised = options.prioritised,
                                        .alpha = options.alpha,
                                        .limit = {.samples_per_insert = options.samples_per_insert,
                                                  .minimum = options.min_size,
                                                  .slack = options.slack},
                                        .prefault = options.prefault},
                                       api::storage_from(options.storage)),
          options.seed)) {}

ReplayBuffer ReplayBuffer::attach(const ReplayStorage& storage, double patience, std::optional<uint64_t> seed) {
  const replay::Storage where = api::storage_from(storage);
  if (where.kind == replay::Storage::Kind::kPrivate) {
    throw Error("[replay] attach: expected shared memory or a file, found neither");
  }
  if (std::isnan(patience)) throw Error("{}: patience: expected seconds, found nan", where.text());
  return ReplayBuffer(std::make_unique<Impl>(replay::ReplayBuffer::attach(where, patience), seed));
}

bool ReplayBuffer::remove(const ReplayStorage& storage) {
  const replay::Storage where = api::storage_from(storage);
  if (where.kind == replay::Storage::Kind::kPrivate) {
    throw Error("[replay] remove: expected shared memory or a file, found neither");
  }
  return replay::ReplayBuffer::remove(where);
}

ReplayBuffer ReplayBuffer::from_snapshot(const std::filesystem::path& path, const ReplayStorage& storage,
                                         uint64_t capacity, std::optional<uint64_t> seed) {
  return ReplayBuffer(std::make_unique<Impl>(replay::from_snapshot(path, api::storage_from(storage), capacity), seed));
}

uint64_t ReplayBuffer::add(const ColumnValues& values, std::optional<float> priority, double timeout) {
  const api::RowArrays arrays = api::rows_from(impl_->buffer.schema(), values, "add");
  if (arrays.rows != 1) throw Error("[replay] add: expected the values of one row, found {} rows", arrays.rows);
  const float given = priority.value_or(0);
  return impl_->add(arrays, {&given, priority ? size_t{1} : size_t{0}}, timeout);
}

std::optional<uint64_t> ReplayBuffer::add_batch(const ColumnValues& values, std::span<const float> priorities,
                                                double timeout) {
  const uint64_t id = impl_->add(api::rows_from(impl_->buffer.schema(), values, "add_batch"), priorities, timeout);
  if (id == replay::kNoRow) return std::nullopt;
  return id;
}

void ReplayBuffer::sample(size_t n, Sample& out, const SampleOptions& options) {
  const replay::Wait wait = wait_from(options.timeout);
  const replay::SampleRequest request{
      .rows = n, .rule = rule_from(options.rule), .half_life = options.half_life, .beta = options.beta};
  const size_t max_rows = static_cast<size_t>(PTRDIFF_MAX) / impl_->buffer.schema().value_bytes();
  if (n > max_rows) throw Error("[replay] sample: n: expected 1 to {}, found {}", max_rows, n);
  const std::vector<std::byte*> columns = impl_->prepare(out, n);
  const replay::SampleArrays arrays{
      .columns = columns, .ids = out.ids_.data(), .ages = out.ages_.data(), .weights = out.weights_.data()};
  impl_->sampler.sample(request, arrays, wait);
}

Sample ReplayBuffer::sample(size_t n, const SampleOptions& options) {
  Sample out;
  sample(n, out, options);
  return out;
}

std::optional<Sample> ReplayBuffer::get(uint64_t id) const {
  Sample row;
  if (!impl_->buffer.read(id, impl_->prepare(row, 1))) return std::nullopt;
  row.ids_[0] = id;
  row.ages_[0] = impl_->buffer.total_added() - 1 - id;
  row.weights_[0] = 1;
  return row;
}

size_t ReplayBuffer::update_priorities(std::span<const uint64_t> ids, std::span<const float> priorities) {
  return impl_->buffer.update_priorities(ids, priorities);
}

SnapshotResult ReplayBuffer::save(const std::filesystem::path& path, size_t threads) const {
  return result_from(replay::save_snapshot(impl_->buffer, path, {.threads = api::threads_from(threads)}));
}
SnapshotResult ReplayBuffer::load(const std::filesystem::path& path, size_t threads) {
  return result_from(replay::load_snapshot(impl_->buffer, path, {.threads = api::threads_from(threads)}));
}
SnapshotResult ReplayBuffer::export_npz(const std::filesystem::path& path) const {
  return result_from(replay::export_npz(impl_->buffer, path));
}
SnapshotResult ReplayBuffer::import_npz(const std::filesystem::path& path) {
  return result_from(replay::import_npz(impl_->buffer, path));
}

uint64_t ReplayBuffer::size() const { return impl_->buffer.size(); }
uint64_t ReplayBuffer::capacity() const { return impl_->buffer.capacity(); }
uint64_t ReplayBuffer::total_added() const { return impl_->buffer.total_added(); }
const std::vector<Column>& ReplayBuffer::columns() const { return impl_->columns; }
size_t ReplayBuffer::row_bytes() const { return impl_->buffer.schema().stored_bytes(); }
uint64_t ReplayBuffer::seed() const { return impl_->sampler.seed(); }

}  // namespace quern
