#include "formats/tensor_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "support/support.h"

namespace quern::formats {
namespace {

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// All values, read in pieces of `rows` rows.
std::vector<float> read(const TensorSource& source, size_t rows) {
  std::vector<float> values(source.size());
  for (size_t first = 0; first < source.rows(); first += rows) {
    const size_t count = std::min(rows, source.rows() - first);
    source.read(first, std::span(values).subspan(first * source.row(), count * source.row()));
  }
  return values;
}

TEST(TensorSource, TransposesInPiecesOfAnySize) {
  const std::vector<float> values = counting(5 * 7);
  for (size_t rows = 1; rows <= 7; ++rows) {
    const TensorSource source = transposed(memory_tensor("m", {5, 7}, values));
    ASSERT_EQ(source.shape, (std::vector<size_t>{7, 5}));
    for (int twice = 0; twice < 2; ++twice) {
      const std::vector<float> found = read(source, rows);
      for (size_t r = 0; r < 7; ++r) {
        for (size_t c = 0; c < 5; ++c) ASSERT_EQ(found[r * 5 + c], values[c * 7 + r]);
      }
    }
  }
}

TEST(TensorSource, TakesRowsInAnotherOrder) {
  const std::vector<float> values = counting(6 * 4);
  const auto reversed = [](size_t row) { return 5 - row; };
  const std::vector<float> found = read(with_rows_from(memory_tensor("m", {6, 4}, values), reversed), 4);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], values[(5 - i / 4) * 4 + i % 4]);
  const std::vector<float> vector =
      read(with_rows_from(memory_tensor("v", {6}, std::span(values).first(6)), reversed), 1);
  EXPECT_EQ(vector, (std::vector<float>{5, 4, 3, 2, 1, 0}));
}

// More than one piece of a megabyte, and rows that do not divide it.
TEST(TensorEncoder, ReturnsAllBytesInOrder) {
  const std::vector<float> values = test::normal(2999 * 224, 3);
  TensorEncoder encoder;
  for (const GgmlType type : {GgmlType::kF32, GgmlType::kBF16, GgmlType::kQ8_0}) {
    const auto next = encoder.reader(memory_tensor("m", {2999, 224}, values), type);
    std::vector<std::byte> all;
    const size_t bytes = values.size() / facts_of(type).elements * facts_of(type).bytes;
    while (all.size() < bytes) {
      const auto piece = next(all.size());
      ASSERT_FALSE(piece.empty());
      all.insert(all.end(), piece.begin(), piece.end());
    }
    ASSERT_EQ(all.size(), bytes);
    const TensorSource again = stored_tensor("m", {2999, 224}, type, all);
    const std::vector<float> found = read(again, 1000);
    if (type == GgmlType::kF32) {
      EXPECT_TRUE(test::same_bits(values, found));
    } else {
      EXPECT_TRUE(test::close(values, found, 0.03));
    }
  }
}

}  // namespace
}  // namespace quern::formats
