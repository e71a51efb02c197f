#include "kernels/column_sums.h"

#include <vector>

#include "support/support.h"

namespace quern::kernels {
namespace {

TEST(ColumnSums, AddsRowsInOrderOnEveryTarget) {
  for (const size_t C : {1, 2, 15, 16, 17, 63, 64, 65, 100, 131, 200}) {
    for (const size_t rows : {0, 1, 2, 7, 40}) {
      const size_t stride = C + rows % 4;
      const test::Placed x(test::normal(rows * stride, 1), C % 3);
      const std::vector<float> before = test::normal(C, 2);
      std::vector<float> expected = before;
      for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < C; ++j) expected[j] += x.data()[r * stride + j];
      }
      test::for_each_target([&](const Target&) {
        test::Placed sums(before, C % 5);
        column_sums(x.data(), stride, rows, C, sums.data());
        EXPECT_TRUE(test::same_bits(expected, sums.span())) << rows << " x " << C;
      });
    }
  }
}

}  // namespace
}  // namespace quern::kernels
