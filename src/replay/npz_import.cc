#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "replay/encoding.h"
#include "replay/npy.h"
#include "replay/npz.h"
#include "replay/npz_names.h"
#include "replay/priority.h"
#include "replay/zip.h"

namespace quern::replay {
namespace {

std::string shape_text(const std::vector<size_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

// One array of the archive, a block of rows at a time.
struct Array {
  ZipStream stream;
  NpyHeader header;
  size_t row_bytes = 0;
  AlignedBuffer<std::byte> values;
};

// Reads all arrays from the first row on; one per pass.
class Importer {
 public:
  Importer(const ReplayBuffer& buffer, const ZipReader& archive) : buffer_(buffer), archive_(archive) {
    check_entries();
    for (const Column& column : buffer.schema().columns()) {
      Array array = open(column.name);
      check_column(column, array);
      arrays_.push_back(std::move(array));
    }
    if (archive.find(entry_name(kIdsArray)) != nullptr) check_ids(open(std::string(kIdsArray)));
    if (buffer.tree() != nullptr && archive.find(entry_name(kPrioritiesArray)) != nullptr) {
      priorities_.emplace(open(std::string(kPrioritiesArray)));
      check_priorities(*priorities_);
    }
    max_rows_ = std::max<size_t>(1, (size_t{1} << 20) / buffer.schema().value_bytes());
    for (Array& array : arrays_) array.values = AlignedBuffer<std::byte>(checked_bytes(max_rows_, array.row_bytes));
    if (priorities_) priorities_->values = AlignedBuffer<std::byte>(max_rows_ * priorities_->row_bytes);
    floats_.resize(max_rows_);
  }

  uint64_t rows() const { return rows_; }

  // Reads the next rows into the arrays; returns how many.
  size_t next(uint64_t max) {
    const size_t rows = std::min({max_rows_, rows_ - done_, max});
    for (Array& array : arrays_) array.stream.read(array.values.span().first(rows * array.row_bytes));
    if (priorities_) read_priorities(rows);
    done_ += rows;
    return rows;
  }

  // Checks the rows read by next(). Error names array and row.
  void check_values(size_t rows) const {
    for (size_t c = 0; c < arrays_.size(); ++c) {
      const Column& column = buffer_.schema().columns()[c];
      for (size_t row = 0; row < rows; ++row) {
        size_t bad = 0;
        if (can_encode(column, arrays_[c].values.data() + row * arrays_[c].row_bytes, bad)) continue;
        fail(column.name, fmt::format("row {}: expected {}, found something else at element {}", done_ - rows + row,
                                      column.encoding == Encoding::kBits
                                          ? "zeros and ones"
                                          : fmt::format("at most {} values other than zero", column.max_nonzero),
                                      bad));
      }
    }
    for (const float priority : priorities(rows)) {
      static_cast<void>(weight_of(priority, buffer_.options().alpha, buffer_.capacity()));
    }
  }

  void finish() {
    for (Array& array : arrays_) array.stream.finish();
    if (priorities_) priorities_->stream.finish();
  }

  void add_to(ReplayBuffer& buffer, size_t rows) const {
    std::vector<const std::byte*> columns;
    for (const Array& array : arrays_) columns.push_back(array.values.data());
    buffer.add_unlimited(columns, rows, priorities(rows));
  }

 private:
  static std::string entry_name(std::string_view array) { return std::string(array) + ".npy"; }

  [[noreturn]] void fail(std::string_view array, const std::string& what) const {
    throw Error("{}: array '{}': {}", archive_.where(), array, what);
  }

  // Rejects unknown arrays, which would otherwise be dropped silently, and duplicates, of which either may be meant.
  void check_entries() const {
    std::set<std::string_view> seen;
    for (const ZipEntry& entry : archive_.entries()) {
      if (!seen.insert(entry.name).second) {
        fail(entry.name.substr(0, entry.name.rfind(".npy")), "expected once in the file, found twice");
      }
      bool known = entry.name == entry_name(kIdsArray) || entry.name == entry_name(kPrioritiesArray);
      std::vector<std::string_view> names;
      for (const Column& column : buffer_.schema().columns()) {
        known = known || entry.name == entry_name(column.name);
        names.push_back(column.name);
      }
      if (known) continue;
      throw Error("{}: expected the arrays {}, found '{}'", archive_.where(), fmt::join(names, ", "), entry.name);
    }
  }

  Array open(const std::string& name) const {
    const ZipEntry* entry = archive_.find(entry_name(name));
    if (entry == nullptr) fail(name, "expected in the file, found none");
    Array array{ZipStream(archive_, *entry), {}, 0, {}};
    array.header = read_npy_header([&](std::span<std::byte> out) { array.stream.read(out); },
                                   fmt::format("{}: array '{}'", archive_.where(), name));
    if (array.header.shape.empty()) fail(name, "expected rows, found a single number");
    return array;
  }

  void check_column(const Column& column, Array& array) {
    const std::vector<size_t> row(array.header.shape.begin() + 1, array.header.shape.end());
    if (array.header.dtype != column.dtype || row != column.shape) {
      fail(column.name, fmt::format("expected {} {} per row, found {} {}", name_of(column.dtype),
                                    shape_text(column.shape), name_of(array.header.dtype), shape_text(row)));
    }
    if (arrays_.empty()) rows_ = array.header.shape[0];
    check_rows(column.name, array);
    array.row_bytes = column.value_bytes();
  }

  // Rows get new ids; those of the file are checked but not used.
  void check_ids(const Array& array) const {
    const DType dtype = array.header.dtype;
    if (array.header.shape.size() != 1 || (dtype != DType::kU64 && dtype != DType::kI64)) {
      fail(kIdsArray, fmt::format("expected uint64 or int64 () per row, found {} of shape {}", name_of(dtype),
                                  shape_text(array.header.shape)));
    }
    check_rows(kIdsArray, array);
  }

  void check_priorities(Array& array) const {
    const DType dtype = array.header.dtype;
    if (array.header.shape.size() != 1 || (dtype != DType::kF32 && dtype != DType::kF64)) {
      fail(kPrioritiesArray, fmt::format("expected float32 or float64 () per row, found {} of shape {}", name_of(dtype),
                                         shape_text(array.header.shape)));
    }
    check_rows(kPrioritiesArray, array);
    array.row_bytes = size_of(dtype);
  }

  void check_rows(std::string_view name, const Array& array) const {
    if (array.header.shape[0] == rows_) return;
    fail(name, fmt::format("expected {} rows as in '{}', found {}", rows_, buffer_.schema().columns()[0].name,
                           array.header.shape[0]));
  }

  void read_priorities(size_t rows) {
    priorities_->stream.read(priorities_->values.span().first(rows * priorities_->row_bytes));
    for (size_t row = 0; row < rows; ++row) {
      if (priorities_->header.dtype == DType::kF32) {
        std::memcpy(&floats_[row], priorities_->values.data() + row * 4, 4);
      } else {
        double wide = 0;
        std::memcpy(&wide, priorities_->values.data() + row * 8, 8);
        floats_[row] = priority_from(wide);
      }
    }
  }

  std::span<const float> priorities(size_t rows) const {
    return priorities_ ? std::span(floats_).first(rows) : std::span<const float>();
  }

  const ReplayBuffer& buffer_;
  const ZipReader& archive_;
  std::vector<Array> arrays_;  // of the columns
  std::optional<Array> priorities_;
  std::vector<float> floats_;
  size_t max_rows_ = 0;
  uint64_t rows_ = 0;
  uint64_t done_ = 0;
};

// Releases the pages of a mapped file while it is read, so that they do not add up to its size.
class Pages {
 public:
  Pages(std::span<const std::byte> file, size_t row_bytes) : file_(file), row_bytes_(row_bytes) {}

  void used(size_t rows) {
    constexpr size_t kReleaseBytes = size_t{4} << 20;
    bytes_ += rows * row_bytes_;
    if (bytes_ < kReleaseBytes) return;
    MappedFile::release(file_);
    bytes_ = 0;
  }

 private:
  std::span<const std::byte> file_;
  size_t row_bytes_;
  size_t bytes_ = 0;  // since the last release
};

// Rows read from a file that another program truncates meanwhile are never added.
SnapshotResult import_archive(ReplayBuffer& buffer, const MappedFile& file) {
  const ZipReader archive(file.bytes(), "[npz] " + file.path().native());
  Pages pages(file.bytes(), buffer.schema().value_bytes());
  Importer check(buffer, archive);
  for (uint64_t left = check.rows(); left > 0;) {
    const size_t rows = check.next(left);
    check.check_values(rows);
    left -= rows;
    pages.used(rows);
  }
  check.finish();
  Importer add(buffer, archive);
  const uint64_t skipped = add.rows() - std::min(add.rows(), buffer.capacity());
  for (uint64_t left = skipped; left > 0;) {
    const size_t rows = add.next(left);
    left -= rows;
    pages.used(rows);
  }
  for (uint64_t left = add.rows() - skipped; left > 0;) {
    const size_t rows = add.next(left);
    file.check_intact();
    add.add_to(buffer, rows);
    left -= rows;
    pages.used(rows);
  }
  add.finish();  // the file may have changed since it was checked
  return {add.rows() - skipped, file.bytes().size(), skipped};
}

}  // namespace

SnapshotResult import_npz(ReplayBuffer& buffer, const std::filesystem::path& path) {
  const MappedFile file(path);
  return file.read([&] { return import_archive(buffer, file); });
}

}  // namespace quern::replay
