#include <algorithm>
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

// One array of the file, block after block; can be read repeatedly.
class ArraySource {
 public:
  ArraySource(const SnapshotReader& reader, std::string name, size_t part, NpyHeader row)
      : reader_(reader), name_(std::move(name)), part_(part), header_(std::move(row)) {
    parts_ = block_parts(reader.info().schema, reader.info().kind());
    row_bytes_ = size_of(header_.dtype);
    for (const size_t extent : header_.shape) row_bytes_ *= extent;
    header_.shape.insert(header_.shape.begin(), reader.info().rows);
    stored_ = AlignedBuffer<std::byte>(checked_bytes(reader.max_rows(), parts_[part].row_bytes));
    piece_rows_ = std::clamp<size_t>(kPieceBytes / row_bytes_, 1, reader.max_rows());
    values_ = AlignedBuffer<std::byte>(checked_bytes(piece_rows_, row_bytes_));
  }
  virtual ~ArraySource() = default;

  // Computes the checksum first, then writes the contents: unpacking twice is cheaper than holding everything in
  // memory.
  void write(FileWriter& file, ZipWriter& archive) {
    const std::string header = npy_header(header_);
    uint32_t crc = zip_crc(0, std::as_bytes(std::span(header)));
    for_pieces([&](std::span<const std::byte> values) { crc = zip_crc(crc, values); });
    archive.begin(name_ + ".npy", header.size() + reader_.info().rows * row_bytes_, crc);
    file.write(header);
    for_pieces([&](std::span<const std::byte> values) { file.write(values); });
  }

 protected:
  // Rows `first` to `first + rows` of a block: `stored` points to the first of these.
  struct Rows {
    const BlockEntry& block;
    size_t first, count;
  };
  virtual void convert(const Rows& rows, const std::byte* stored, std::byte* values) const = 0;
  const SnapshotReader& reader_;

 private:
  // A block is small when encoded, but not when decoded: a sparse row of 20 bytes may have megabytes of values.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  void for_pieces(const std::function<void(std::span<const std::byte>)>& body) {
    const size_t stored_bytes = parts_[part_].row_bytes;
    for (size_t b = 0; b < reader_.blocks().size(); ++b) {
      const BlockEntry& block = reader_.blocks()[b];
      reader_.unpack_part(b, part_, codec_, stored_.span().first(block.rows * stored_bytes));
      for (size_t first = 0; first < block.rows; first += piece_rows_) {
        const size_t count = std::min<size_t>(piece_rows_, block.rows - first);
        convert({block, first, count}, stored_.data() + first * stored_bytes, values_.data());
        body(values_.span().first(count * row_bytes_));
      }
    }
  }

  std::string name_;
  size_t part_;
  NpyHeader header_;
  size_t row_bytes_ = 0;
  size_t piece_rows_ = 0;  // converted per call
  std::vector<BlockPart> parts_;
  BlockCodec codec_;
  AlignedBuffer<std::byte> stored_, values_;
};

class ColumnSource final : public ArraySource {
 public:
  ColumnSource(const SnapshotReader& reader, const Column& column, size_t part)
      : ArraySource(reader, column.name, part, {column.dtype, column.shape}), column_(column) {}

 private:
  void convert(const Rows& rows, const std::byte* stored, std::byte* values) const override {
    const size_t from = column_.stored_bytes(), to = column_.value_bytes();
    for (size_t row = 0; row < rows.count; ++row) decode(column_, stored + row * from, values + row * to);
  }
  const Column& column_;
};

class IdSource final : public ArraySource {
 public:
  IdSource(const SnapshotReader& reader, size_t part)
      : ArraySource(reader, std::string(kIdsArray), part, {DType::kU64, {}}) {}

 private:
  void convert(const Rows& rows, const std::byte* stored, std::byte* values) const override {
    const auto* gaps = reinterpret_cast<const uint32_t*>(stored);
    auto* ids = reinterpret_cast<uint64_t*>(values);
    for (size_t row = 0; row < rows.count; ++row) ids[row] = rows.block.first_id + rows.first + row + gaps[row];
  }
};

class PrioritySource final : public ArraySource {
 public:
  explicit PrioritySource(const SnapshotReader& reader)
      : ArraySource(reader, std::string(kPrioritiesArray), 0, {DType::kF32, {}}) {}

 private:
  void convert(const Rows& rows, const std::byte* stored, std::byte* values) const override {
    const auto* weights = reinterpret_cast<const uint64_t*>(stored);
    auto* priorities = reinterpret_cast<float*>(values);
    for (size_t row = 0; row < rows.count; ++row) {
      priorities[row] = static_cast<float>(priority_of(weights[row], reader_.info().alpha));
    }
  }
};

// A snapshot of the rows for the duration of an export. It has a name, in a temporary folder next to the file, only
// while it is saved: an open file stays readable without a name. A kill in that time leaves the folder behind, which
// the next export to the same file removes with its contents, like the temporary file of the export.
SnapshotReader take_snapshot(const ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options) {
  const AtomicDirectory folder(path);  // never committed
  save_snapshot(buffer, folder.temporary() / "rows", options);
  return SnapshotReader(folder.temporary() / "rows");
}

// Arrays are unpacked part by part, without checksums: the snapshot is verified after all of it was read, so that no
// file is written if it was changed meanwhile.
SnapshotResult write_npz(const SnapshotReader& reader, AtomicFile& file) {
  ZipWriter archive(file.writer());
  const std::vector<Column>& columns = reader.info().schema.columns();
  const BlockKind kind = reader.info().kind();
  for (size_t c = 0; c < columns.size(); ++c)
    ColumnSource(reader, columns[c], kind.first_column() + c).write(file.writer(), archive);
  IdSource(reader, kind.gaps()).write(file.writer(), archive);
  if (reader.info().prioritised) PrioritySource(reader).write(file.writer(), archive);
  archive.finish();
  reader.verify(1);
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
  const SnapshotReader reader = take_snapshot(buffer, path, options);
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
