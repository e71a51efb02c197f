// Rows that carry a checksum over all their columns, so that a mix of two is noticed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "core/crc32c.h"
#include "replay/buffer.h"

namespace quern::test {

// Columns of odd sizes, the last one for the checksum; `planes` floats in the first make rows as long as wanted.
inline replay::Schema checked_schema(size_t planes = 61) {
  using replay::DType;
  return replay::Schema({{.name = "planes", .dtype = DType::kF32, .shape = {planes}},
                         {.name = "move", .dtype = DType::kU8, .shape = {5}},
                         {.name = "policy", .dtype = DType::kF16, .shape = {7, 3}},
                         {.name = "writer", .dtype = DType::kI64},
                         {.name = "check", .dtype = DType::kU32}});
}

// The arrays of `rows` rows of any schema whose last column is a uint32.
class CheckedRows {
 public:
  explicit CheckedRows(const replay::Schema& schema, size_t rows = 1) : schema_(schema), rows_(rows) {
    for (const replay::Column& column : schema.columns()) {
      arrays_.emplace_back(rows * column.value_bytes());
      inputs_.push_back(arrays_.back().data());
      outputs_.push_back(arrays_.back().data());
    }
  }

  // The same numbers for the same seed.
  void fill(uint64_t seed) {
    std::mt19937_64 generator(seed);
    for (std::vector<std::byte>& array : arrays_) {
      for (std::byte& byte : array) byte = static_cast<std::byte>(generator());
    }
    for (size_t row = 0; row < rows_; ++row) {
      const uint32_t sum = checksum(row);
      std::memcpy(&arrays_.back()[row * sizeof(sum)], &sum, sizeof(sum));
    }
  }

  bool good(size_t row = 0) const {
    uint32_t found = 0;
    std::memcpy(&found, &arrays_.back()[row * sizeof(found)], sizeof(found));
    return found == checksum(row);
  }

  // Of a column; after it has changed, seal() makes the row good again.
  template <typename T>
  void set(size_t column, size_t row, T value) {
    std::memcpy(&arrays_[column][row * schema_.columns()[column].value_bytes()], &value, sizeof(value));
  }
  template <typename T>
  T get(size_t column, size_t row = 0) const {
    T value;
    std::memcpy(&value, &arrays_[column][row * schema_.columns()[column].value_bytes()], sizeof(value));
    return value;
  }
  void seal(size_t row) { set(arrays_.size() - 1, row, checksum(row)); }

  std::span<const std::byte* const> inputs() const { return inputs_; }
  std::span<std::byte* const> outputs() const { return outputs_; }
  const std::vector<std::vector<std::byte>>& arrays() const { return arrays_; }
  size_t rows() const { return rows_; }

 private:
  uint32_t checksum(size_t row) const {
    uint32_t sum = 17;  // so that zeros are not good
    for (size_t c = 0; c + 1 < arrays_.size(); ++c) {
      const size_t bytes = schema_.columns()[c].value_bytes();
      const auto* const text = reinterpret_cast<const char*>(&arrays_[c][row * bytes]);
      sum = sum * 31 + crc32c(std::string_view(text, bytes));
    }
    return sum;
  }

  replay::Schema schema_;
  size_t rows_;
  std::vector<std::vector<std::byte>> arrays_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

// How long a stress test runs: about a second, or QUERN_REPLAY_STRESS_SECONDS.
inline double stress_seconds() {
  const char* const text = std::getenv("QUERN_REPLAY_STRESS_SECONDS");
  return text == nullptr ? 1 : std::max(1.0, std::atof(text));
}

}  // namespace quern::test
