// Squared ReLU on one vector, compiled once per target. Shared by relu2.cc and the GEMM epilogue, so both are
// bit-identical. Included by kernel .cc files after hwy/foreach_target.h, like vec-inl.h.
#if defined(QUERN_KERNELS_RELU2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_RELU2_INL_H_
#undef QUERN_KERNELS_RELU2_INL_H_
#else
#define QUERN_KERNELS_RELU2_INL_H_
#endif

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// Both results follow from max(x, 0), in which NaN remains NaN.
HWY_INLINE V Relu2OfPositive(V positive) { return hn::Mul(positive, positive); }
HWY_INLINE V Relu2(V x) { return Relu2OfPositive(AtLeast(0.0f, x)); }

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_RELU2_INL_H_
