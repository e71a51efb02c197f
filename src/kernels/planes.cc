#include "kernels/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/planes.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

void PlanesToRows(const float* planes, size_t boards, size_t plane_count, size_t squares, float* rows) {
  const size_t board = plane_count * squares;
  for (size_t b = 0; b < boards; ++b) {
    TransposeCopy(planes + b * board, squares, plane_count, squares, rows + b * board, plane_count);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(PlanesToRows);

void planes_to_rows(const float* planes, size_t boards, size_t plane_count, size_t squares, float* rows) noexcept {
  HWY_DYNAMIC_DISPATCH(PlanesToRows)(planes, boards, plane_count, squares, rows);
}

}  // namespace quern::kernels
#endif
