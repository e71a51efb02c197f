#include "kernels/planes.h"

#include <vector>

#include "support/support.h"

namespace quern::kernels {
namespace {

TEST(Planes, AreTransposedBoardByBoard) {
  for (const size_t planes : {1u, 2u, 4u, 17u, 48u, 122u}) {
    for (const size_t squares : {2u, 9u, 42u, 64u}) {
      const size_t boards = 3, n = boards * planes * squares;
      const std::vector<float> values = test::normal(n, 1);
      test::for_each_target([&](const Target&) {
        const test::Placed in(values, planes % 7);
        test::Placed rows(n, -7.0f, squares % 5);
        planes_to_rows(in.data(), boards, planes, squares, rows.data());
        for (size_t b = 0; b < boards; ++b) {
          for (size_t s = 0; s < squares; ++s) {
            for (size_t p = 0; p < planes; ++p) {
              ASSERT_EQ(rows[(b * squares + s) * planes + p], values[(b * planes + p) * squares + s]);
            }
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace quern::kernels
