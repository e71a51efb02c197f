#include <unistd.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "replay/encoding.h"
#include "replay/npy.h"
#include "replay/npz.h"
#include "replay/npz_names.h"
#include "replay/snapshot_file.h"
#include "replay/zip.h"

namespace quern::replay {
namespace {

// One array of the file, block after block, as often as one likes.
class ArraySource {
 public:
  ArraySource(const SnapshotReader& reader, std::string name, size_t part, NpyHeader row)
      : reader_(reader), name_(std::move(name)), part_(part), header_(std::move(row)) {
    parts_ = block_parts(reader.info().schema, reader.info().prioritised);
    row_bytes_ = size_of(header_.dtype);
    for (const size_t extent : header_.shape) row_bytes_ *= extent;
    header_.shape.insert(header_.shape.begin(), reader.info().rows);
    stored_ = AlignedBuffer<std::byte>(checked_bytes(reader.most_rows(), parts_[part].row_bytes));
    values_ = AlignedBuffer<std::byte>(checked_bytes(reader.most_rows(), row_bytes_));
  }
  virtual ~ArraySource() = default;

  // Checksums first, then the contents: twice unpacked is cheaper than holding it all.
  void write(FileWriter& file, ZipWriter& archive) {
    const std::string header = npy_header(header_);
    uint32_t crc = zip_crc(0, std::as_bytes(std::span(header)));
    for_blocks([&](std::span<const std::byte> values) { crc = zip_crc(crc, values); });
    archive.begin(name_ + ".npy", header.size() + reader_.info().rows * row_bytes_, crc);
    file.write(header);
    for_blocks([&](std::span<const std::byte> values) { file.write(values); });
  }

 protected:
  virtual void convert(const BlockEntry& block, const std::byte* stored, std::byte* values) const = 0;
  const SnapshotReader& reader_;

 private:
  void for_blocks(const std::function<void(std::span<const std::byte>)>& body) {
    for (size_t b = 0; b < reader_.blocks().size(); ++b) {
      const BlockEntry& block = reader_.blocks()[b];
      reader_.unpack_part(b, part_, codec_, stored_.span().first(block.rows * parts_[part_].row_bytes));
      convert(block, stored_.data(), values_.data());
      body(values_.span().first(block.rows * row_bytes_));
    }
  }

  std::string name_;
  size_t part_;
  NpyHeader header_;
  size_t row_bytes_ = 0;
  std::vector<BlockPart> parts_;
  BlockCodec codec_;
  AlignedBuffer<std::byte> stored_, values_;
};

class ColumnSource final : public ArraySource {
 public:
  ColumnSource(const SnapshotReader& reader, const Column& column, size_t part)
      : ArraySource(reader, column.name, part, {column.dtype, column.shape}), column_(column) {}

 private:
  void convert(const BlockEntry& block, const std::byte* stored, std::byte* values) const override {
    const size_t from = column_.stored_bytes(), to = column_.value_bytes();
    for (size_t row = 0; row < block.rows; ++row) decode(column_, stored + row * from, values + row * to);
  }
  const Column& column_;
};

class IdSource final : public ArraySource {
 public:
  IdSource(const SnapshotReader& reader, size_t part)
      : ArraySource(reader, std::string(kIdsArray), part, {DType::kU64, {}}) {}

 private:
  void convert(const BlockEntry& block, const std::byte* stored, std::byte* values) const override {
    const auto* gaps = reinterpret_cast<const uint32_t*>(stored);
    auto* ids = reinterpret_cast<uint64_t*>(values);
    for (size_t row = 0; row < block.rows; ++row) ids[row] = block.first_id + row + gaps[row];
  }
};

class PrioritySource final : public ArraySource {
 public:
  explicit PrioritySource(const SnapshotReader& reader)
      : ArraySource(reader, std::string(kPrioritiesArray), 0, {DType::kF32, {}}) {}

 private:
  void convert(const BlockEntry& block, const std::byte* stored, std::byte* values) const override {
    const auto* weights = reinterpret_cast<const uint64_t*>(stored);
    auto* priorities = reinterpret_cast<float*>(values);
    for (size_t row = 0; row < block.rows; ++row) {
      priorities[row] = static_cast<float>(priority_of(weights[row], reader_.info().alpha));
    }
  }
};

// A snapshot for the time of an export. A killed export leaves it behind for the next one of that name to remove.
class TemporarySnapshot {
 public:
  explicit TemporarySnapshot(const std::filesystem::path& path) {
    path_ = path;
    path_.replace_filename(fmt::format("{}{}-{}.snapshot", kTemporaryPrefix, path.filename().native(), getpid()));
  }
  TemporarySnapshot(const TemporarySnapshot&) = delete;
  TemporarySnapshot& operator=(const TemporarySnapshot&) = delete;
  ~TemporarySnapshot() { unlink(path_.c_str()); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

SnapshotResult write_npz(const SnapshotReader& reader, AtomicFile& file) {
  ZipWriter archive(file.writer());
  const std::vector<Column>& columns = reader.info().schema.columns();
  const size_t gaps = reader.info().prioritised ? 1 : 0;
  for (size_t c = 0; c < columns.size(); ++c)
    ColumnSource(reader, columns[c], gaps + 1 + c).write(file.writer(), archive);
  IdSource(reader, gaps).write(file.writer(), archive);
  if (reader.info().prioritised) PrioritySource(reader).write(file.writer(), archive);
  archive.finish();
  const uint64_t bytes = file.writer().written();
  file.commit();
  return {reader.info().rows, bytes, reader.info().skipped};
}

void check_names(const Schema& schema, const std::filesystem::path& path) {
  for (const Column& column : schema.columns()) {
    if (column.name != kIdsArray && column.name != kPrioritiesArray) continue;
    throw Error("[npz] {}: expected no column with the name of a special array, found '{}'", path.native(),
                column.name);
  }
}

}  // namespace

SnapshotResult export_npz(const ReplayBuffer& buffer, const std::filesystem::path& path,
                          const SnapshotOptions& options) {
  check_names(buffer.schema(), path);
  remove_leftovers_of(path);
  const TemporarySnapshot snapshot(path);
  save_snapshot(buffer, snapshot.path(), options);
  const SnapshotReader reader(snapshot.path());
  AtomicFile file(path);
  return write_npz(reader, file);
}

SnapshotResult export_npz(const std::filesystem::path& snapshot, const std::filesystem::path& path) {
  const SnapshotReader reader(snapshot);
  check_names(reader.info().schema, path);
  reader.verify(1);
  remove_leftovers_of(path);
  AtomicFile file(path);
  return write_npz(reader, file);
}

}  // namespace quern::replay
