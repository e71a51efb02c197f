#include "kernels/column_sums.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/column_sums.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// 64 columns stay in registers across all rows; each addition waits for the previous one (4 cycles), and 64 columns are
// 4 to 16 independent chains.
void ColumnSums(const float* HWY_RESTRICT x, size_t stride, size_t rows, size_t C, float* HWY_RESTRICT sums) {
  size_t j = 0;
  for (; j + 4 * kVirtualLanes <= C; j += 4 * kVirtualLanes) {
    V16 s0 = Load16(sums + j), s1 = Load16(sums + j + 16), s2 = Load16(sums + j + 32), s3 = Load16(sums + j + 48);
    for (size_t r = 0; r < rows; ++r) {
      const float* row = x + r * stride + j;
      s0 = Add16(s0, Load16(row));
      s1 = Add16(s1, Load16(row + 16));
      s2 = Add16(s2, Load16(row + 32));
      s3 = Add16(s3, Load16(row + 48));
    }
    Store16(s0, sums + j);
    Store16(s1, sums + j + 16);
    Store16(s2, sums + j + 32);
    Store16(s3, sums + j + 48);
  }
  for (; j + kVirtualLanes <= C; j += kVirtualLanes) {
    V16 s = Load16(sums + j);
    for (size_t r = 0; r < rows; ++r) s = Add16(s, Load16(x + r * stride + j));
    Store16(s, sums + j);
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = j; c < C; ++c) sums[c] += x[r * stride + c];
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(ColumnSums);

}  // namespace

void column_sums(const float* x, size_t stride, size_t rows, size_t C, float* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(ColumnSums)(x, stride, rows, C, sums);
}

}  // namespace quern::kernels
#endif
