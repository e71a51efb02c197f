// GELU on one vector, compiled once per target. gelu.cc and the epilogue of GEMM share it, so both give the same bits.
// Included by kernel .cc files after hwy/foreach_target.h, as vec-inl.h is.
#if defined(QUERN_KERNELS_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_GELU_INL_H_
#undef QUERN_KERNELS_GELU_INL_H_
#else
#define QUERN_KERNELS_GELU_INL_H_
#endif

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// -2u = x (kGeluA + kGeluB x^2), with kGeluA = -2 sqrt(2 / pi) and kGeluB = 0.044715 kGeluA.
constexpr float kGeluA = -1.59576912f;
constexpr float kGeluB = -0.0713548163f;

// Beyond it gelu(x) is 0 or x in fp32, to within 2e-37. Clamping there keeps -2u below 87, so e^(-2u) is finite, its
// reciprocal is a normal number, and no product is inf * 0.
constexpr float kGeluLimit = 9.98f;

// x where it is at least -kGeluLimit; NaN stays NaN.
HWY_INLINE V GeluClampLow(V x) {
  const V low = hn::Set(d, -kGeluLimit);
  return hn::IfThenElse(hn::Lt(x, low), low, x);
}

// x / (1 + e^(-2u)). Large x make x^2 infinite, e^(-inf) = 0 and the quotient x.
HWY_INLINE V Gelu(V x) {
  const V c = GeluClampLow(x);
  const V exponent = hn::Mul(c, hn::MulAdd(hn::Mul(c, c), hn::Set(d, kGeluB), hn::Set(d, kGeluA)));
  return hn::Div(c, hn::Add(Exp(exponent), hn::Set(d, 1.0f)));
}

// With e = e^(-2u) and s = 1 / (1 + e): s + x s (1 - s) 2u'. 1 - s is taken as e s, which does not cancel.
HWY_INLINE V GeluDerivative(V x) {
  const V one = hn::Set(d, 1.0f);
  const V high = hn::Set(d, kGeluLimit);
  V c = GeluClampLow(x);
  c = hn::IfThenElse(hn::Gt(c, high), high, c);
  const V square = hn::Mul(c, c);
  const V e = Exp(hn::Mul(c, hn::MulAdd(square, hn::Set(d, kGeluB), hn::Set(d, kGeluA))));
  const V s = hn::Div(one, hn::Add(e, one));
  const V slope = hn::MulAdd(square, hn::Set(d, -3.0f * kGeluB), hn::Set(d, -kGeluA));  // 2u'
  return hn::MulAdd(hn::Mul(hn::Mul(e, s), hn::Mul(c, slope)), s, s);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GELU_INL_H_
