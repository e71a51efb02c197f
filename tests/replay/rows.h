// Buffers with columns of every kind, and rows that are known by their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "replay/buffer.h"
#include "replay/encoding.h"

namespace quern::test {

using Bytes = std::vector<std::byte>;

inline replay::BufferOptions options_for(uint64_t capacity, bool prioritised = false, double alpha = 0.6) {
  replay::BufferOptions options;
  options.capacity = capacity;
  options.prioritised = prioritised;
  options.alpha = alpha;
  options.prefault = false;
  return options;
}

inline uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 31) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
  return x ^ x >> 32;
}

// Every dtype raw; bits and sparse of some; a first column with the number of the row.
inline replay::Schema schema_of_all() {
  using replay::DType;
  using replay::Encoding;
  std::vector<replay::Column> columns = {{"number", DType::kU64, {}, Encoding::kRaw, 0}};
  for (const DType dtype : {DType::kBool, DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32,
                            DType::kI64, DType::kU64, DType::kF16, DType::kF32, DType::kF64}) {
    columns.push_back({std::string("raw_") + std::string(name_of(dtype)), dtype, {3, 7}, Encoding::kRaw, 0});
  }
  columns.push_back({"bits_float32", DType::kF32, {2, 65}, Encoding::kBits, 0});
  columns.push_back({"bits_bool", DType::kBool, {5}, Encoding::kBits, 0});
  columns.push_back({"sparse_float32", DType::kF32, {300}, Encoding::kSparse, 9});
  columns.push_back({"sparse_float16", DType::kF16, {31}, Encoding::kSparse, 31});
  columns.push_back({"zeros", DType::kF32, {100}, Encoding::kRaw, 0});
  return replay::Schema(columns);
}

inline replay::Schema small_schema() {
  using replay::DType;
  using replay::Encoding;
  return replay::Schema({{"number", DType::kU64, {}, Encoding::kRaw, 0},
                         {"planes", DType::kF32, {70}, Encoding::kRaw, 0},
                         {"bits", DType::kF32, {70}, Encoding::kBits, 0},
                         {"policy", DType::kF16, {100}, Encoding::kSparse, 5}});
}

// The values of one column of row `number`: any bits where the column takes them, so NaN and -0.0 too.
inline Bytes values_of(const replay::Column& column, uint64_t number) {
  const size_t size = size_of(column.dtype);
  Bytes values(column.value_bytes());
  if (column.name == "number") {
    std::memcpy(values.data(), &number, 8);
    return values;
  }
  if (column.name == "zeros") return values;
  size_t kept = 0;
  for (size_t i = 0; i < column.elements(); ++i) {
    uint64_t word = mixed(number * 1000 + i);
    if (column.dtype == replay::DType::kBool || column.encoding == replay::Encoding::kBits || column.name == "planes") {
      word = word % 3 == 0 ? replay::one_of(column.dtype) : 0;
    } else if (column.encoding == replay::Encoding::kSparse) {
      const bool keep = word % 40 == 0 && kept < column.max_nonzero;
      word = keep ? word >> 8 | 1 : 0;
      kept += keep ? 1 : 0;
    }
    std::memcpy(values.data() + i * size, &word, size);
  }
  return values;
}

inline void add_row(replay::ReplayBuffer& buffer, uint64_t number, const float* priority = nullptr) {
  std::vector<Bytes> values;
  std::vector<const std::byte*> columns;
  for (const replay::Column& column : buffer.schema().columns()) values.push_back(values_of(column, number));
  for (const Bytes& column : values) columns.push_back(column.data());
  buffer.add(columns, 1, priority == nullptr ? std::span<const float>() : std::span<const float>(priority, 1));
}

inline void add_rows(replay::ReplayBuffer& buffer, uint64_t begin, uint64_t end) {
  for (uint64_t number = begin; number < end; ++number) add_row(buffer, number);
}

inline constexpr uint64_t kNotARow = ~uint64_t{0};

// The number of the row with this id, whose values must all be those of that number; else kNotARow.
inline uint64_t number_of(const replay::ReplayBuffer& buffer, uint64_t id) {
  std::vector<Bytes> values;
  std::vector<std::byte*> columns;
  for (const replay::Column& column : buffer.schema().columns()) values.emplace_back(column.value_bytes());
  for (Bytes& column : values) columns.push_back(column.data());
  if (!buffer.read(id, columns)) return kNotARow;
  uint64_t number = 0;
  std::memcpy(&number, values[0].data(), 8);
  for (size_t c = 0; c < values.size(); ++c) {
    if (values[c] != values_of(buffer.schema().columns()[c], number)) return kNotARow;
  }
  return number;
}

// The numbers of all rows, oldest first.
inline std::vector<uint64_t> numbers_in(const replay::ReplayBuffer& buffer) {
  std::vector<uint64_t> numbers;
  const replay::Window window = buffer.ring().window();
  for (uint64_t id = window.begin; id < window.end; ++id) numbers.push_back(number_of(buffer, id));
  return numbers;
}

inline std::vector<uint64_t> counting(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> numbers;
  for (uint64_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace quern::test
