// Columns of a replay buffer, and their values as added and sampled. Included by <quern/replay.h>.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <quern/error.h>

namespace quern {

struct Column {
  std::string name;
  std::string dtype = "float32";   // as in NumPy: bool, int8 to int64, uint8 to uint64, float16, float32, float64
  std::vector<size_t> shape = {};  // of one row; empty for a number
  std::string encoding = "raw";    // or "bits": only zeros and ones, one bit each; or "sparse": mostly zeros
  size_t max_nonzero = 0;          // of "sparse": max number of nonzero values in a row

  bool operator==(const Column&) const = default;
};

// The NumPy name of T. Values of a float16 column are uint16_t, their bit patterns, since C++20 has no 16-bit float.
template <typename T>
constexpr std::string_view dtype_name() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a column holds bool, integers, float or double");
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? "float32" : "float64";
  constexpr std::string_view kSigned[] = {"int8", "int16", "", "int32", "", "", "", "int64"};
  constexpr std::string_view kUnsigned[] = {"uint8", "uint16", "", "uint32", "", "", "", "uint64"};
  return (std::is_signed_v<T> ? kSigned : kUnsigned)[sizeof(T) - 1];
}

// A name and the values of that column, borrowed: a number, or a contiguous array (std::vector, std::array, std::span).
class NamedValues {
 public:
  template <typename Array>
  requires std::ranges::contiguous_range<const Array> NamedValues(std::string_view column, const Array& array)
      : NamedValues(column, dtype_name<std::ranges::range_value_t<Array>>(),
                    std::as_bytes(std::span(std::ranges::data(array), std::ranges::size(array)))) {}

  template <typename Number>
  requires std::is_arithmetic_v<Number> NamedValues(std::string_view column, const Number& number)
      : NamedValues(column, dtype_name<Number>(), std::as_bytes(std::span(&number, 1))) {}

  std::string_view column() const { return column_; }
  std::string_view dtype() const { return dtype_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  NamedValues(std::string_view column, std::string_view dtype, std::span<const std::byte> bytes)
      : column_(column), dtype_(dtype), bytes_(bytes) {}

  std::string_view column_, dtype_;
  std::span<const std::byte> bytes_;
};

using ColumnValues = std::initializer_list<NamedValues>;

// Rows drawn by sample(): the values of each column, row after row, with each row's id, age and importance weight. The
// returned spans refer to memory of the sample, so they are not available from a temporary.
class Sample {
 public:
  Sample() = default;

  size_t rows() const { return ids_.size(); }
  // Error for an unknown column or when T is not its type.
  template <typename T>
  std::span<const T> values(std::string_view column) const& {
    const std::span<const std::byte> bytes = checked(column, dtype_name<T>());
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> values(std::string_view column) const&& = delete;
  std::span<const uint64_t> ids() const& { return ids_; }
  std::span<const uint64_t> ids() const&& = delete;
  std::span<const uint64_t> ages() const& { return ages_; }  // rows added since: 0 for the newest
  std::span<const uint64_t> ages() const&& = delete;
  std::span<const float> weights() const& { return weights_; }  // 1 except for Rule::kPrioritised
  std::span<const float> weights() const&& = delete;
  // Of get(ids): whether the row was in the buffer; its values are zeros if not. bool-sized, 1 or 0.
  std::span<const uint8_t> mask() const& { return mask_; }
  std::span<const uint8_t> mask() const&& = delete;

 private:
  friend class ReplayBuffer;
  friend struct SampleMemory;
  struct Values {
    std::string column, dtype;
    std::vector<std::byte> bytes;  // allocated by operator new, so aligned for every numeric type
  };
  std::span<const std::byte> checked(std::string_view column, std::string_view dtype) const;

  std::vector<Values> values_;
  std::vector<uint64_t> ids_, ages_;
  std::vector<float> weights_;
  std::vector<uint8_t> mask_;
};

}  // namespace quern
