#include <quern/replay.h>

#include <cmath>

#include "api/replay_impl.h"
#include "api/threads.h"
#include "core/error.h"
#include "core/text.h"
#include "replay/npz.h"
#include "replay/read_rows.h"
#include "replay/snapshot.h"

namespace quern {
namespace {

SnapshotResult result_from(const replay::SnapshotResult& result) {
  return {.rows = result.rows, .bytes = result.bytes, .skipped = result.skipped};
}

replay::Storage named_storage(const ReplayStorage& storage, std::string_view function) {
  replay::Storage where = api::storage_from(storage);
  if (where.kind != replay::Storage::Kind::kPrivate) return where;
  throw Error("[replay] {}: expected shared memory or a file, found neither", function);
}

}  // namespace

ReplayBuffer::ReplayBuffer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ReplayBuffer::ReplayBuffer(ReplayBuffer&&) noexcept = default;
ReplayBuffer& ReplayBuffer::operator=(ReplayBuffer&&) noexcept = default;
ReplayBuffer::~ReplayBuffer() = default;

ReplayBuffer::ReplayBuffer(const std::vector<Column>& columns, const ReplayOptions& options)
    : impl_(std::make_unique<Impl>(replay::ReplayBuffer::create(api::schema_from(columns), api::options_from(options),
                                                                api::storage_from(options.storage)),
                                   options.seed)) {}

ReplayBuffer ReplayBuffer::open_or_create(const std::vector<Column>& columns, const ReplayOptions& options) {
  const replay::Storage where = named_storage(options.storage, "open_or_create");
  return ReplayBuffer(std::make_unique<Impl>(
      replay::ReplayBuffer::open_or_create(api::schema_from(columns), api::options_from(options), where),
      options.seed));
}

ReplayBuffer ReplayBuffer::attach(const ReplayStorage& storage, double patience, std::optional<uint64_t> seed) {
  const replay::Storage where = named_storage(storage, "attach");
  if (std::isnan(patience)) throw Error("{}: patience: expected seconds, found nan", where.text());
  return ReplayBuffer(std::make_unique<Impl>(replay::ReplayBuffer::attach(where, patience), seed));
}

bool ReplayBuffer::remove(const ReplayStorage& storage) {
  return replay::ReplayBuffer::remove(named_storage(storage, "remove"));
}

ReplayBuffer ReplayBuffer::from_snapshot(const std::filesystem::path& path, const ReplayStorage& storage,
                                         uint64_t capacity, std::optional<uint64_t> seed) {
  return ReplayBuffer(std::make_unique<Impl>(replay::from_snapshot(path, api::storage_from(storage), capacity), seed));
}

uint64_t ReplayBuffer::add(const ColumnValues& values, std::optional<float> priority, double timeout) {
  if (impl_->buffer.links() != nullptr) {
    throw Error(
        "[replay] add: expected the rows of an actor, found one row; use writer().add() in a buffer with episodes");
  }
  return impl_->add(values, priority, timeout, {});
}

std::optional<uint64_t> ReplayBuffer::add_batch(const ColumnValues& values, std::span<const float> priorities,
                                                double timeout) {
  replay::Stream stream;
  return impl_->add_batch(values, priorities, timeout, {&stream, 1});
}

void ReplayBuffer::sample(size_t n, Sample& out, const SampleOptions& options) {
  const replay::Wait wait = api::wait_from(options.timeout);
  const replay::SampleRequest request = impl_->request_from(n, options, 1, "sample");
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
  Sample row = get(std::span(&id, 1));
  if (row.mask()[0] == 0) return std::nullopt;
  return row;
}

Sample ReplayBuffer::get(std::span<const uint64_t> ids) const {
  Sample rows;
  std::vector<std::byte*> columns = impl_->prepare(rows, ids.size());
  rows.mask_.resize(ids.size());
  replay::read_rows(impl_->buffer, ids, columns, rows.mask_);
  const uint64_t end = impl_->buffer.ring().window().end;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows.ids_[i] = ids[i];
    rows.ages_[i] = rows.mask_[i] == 0 ? 0 : end - 1 - ids[i];
    rows.weights_[i] = 1;
  }
  return rows;
}

void ReplayBuffer::clear() { impl_->buffer.clear(); }

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
bool ReplayBuffer::prioritised() const { return impl_->buffer.options().prioritised; }

}  // namespace quern
