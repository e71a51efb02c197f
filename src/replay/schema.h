// The schema of a replay buffer's rows: named columns of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::replay {

// NumPy names: "bool", "int8", ..., "float16", "float32", "float64".
enum class DType : uint8_t { kBool, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kF32, kF64 };

size_t size_of(DType dtype) noexcept;
std::string_view name_of(DType dtype) noexcept;
DType dtype_named(std::string_view name);  // Error that lists the names

// How a column is stored in the buffer; callers always pass and receive values of its dtype.
enum class Encoding : uint8_t {
  kRaw,     // as given
  kBits,    // one bit per element, for planes of zeros and ones; any other value is rejected
  kSparse,  // index and value of the nonzero elements; more than Column::max_nonzero are rejected
};

std::string_view name_of(Encoding encoding) noexcept;  // "raw", "bits", "sparse"
Encoding encoding_named(std::string_view name);        // Error that lists the names

struct Column {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<size_t> shape = {};  // of one row; empty for a scalar
  Encoding encoding = Encoding::kRaw;
  size_t max_nonzero = 0;  // of kSparse: max number of nonzero elements in a row

  size_t elements() const noexcept;      // of one row
  size_t value_bytes() const noexcept;   // of one row, as callers see it
  size_t stored_bytes() const noexcept;  // of one row, in the buffer
  std::string description() const;       // for messages: "float32 (8, 8, 119)", "uint8 (3,) as bits"

  bool operator==(const Column&) const = default;
};

inline constexpr size_t kMaxColumns = 64;
inline constexpr size_t kMaxDimensions = 32;  // as in NumPy
inline constexpr size_t kMaxName = 255;
inline constexpr size_t kMaxSchemaText = 1 << 18;  // 64 x (255 bytes as \u00XX + 32 extents of 10 digits) fit

// One to 64 columns. Immutable.
class Schema {
 public:
  // Error naming the column: a name that is duplicate, empty, longer than 255 bytes or not UTF-8; a shape with a zero,
  // more than 32 dimensions or more than 2^32 elements; kSparse without `max_nonzero`, or with one above elements() or
  // 2^32 - 1.
  explicit Schema(std::vector<Column> columns);

  const std::vector<Column>& columns() const noexcept { return columns_; }
  size_t index_of(std::string_view name) const;  // Error that lists the columns
  size_t value_bytes() const noexcept;           // of a row, over all columns
  size_t stored_bytes() const noexcept;

  // The schema as one line of JSON, and back; equal schemas give equal texts. It is stored in the header of a shared
  // buffer and of a snapshot.
  std::string text() const;
  static Schema from_text(std::string_view text);

  // Error naming the first column that differs, with expected (this) and found. `where` is the prefix of the message.
  void expect_same(const Schema& found, std::string_view where) const;

  bool operator==(const Schema&) const = default;

 private:
  std::vector<Column> columns_;
};

}  // namespace quern::replay
