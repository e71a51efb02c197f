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

// Beyond it gelu(x) is 0 or x in fp32, to within 2e-37. Clamping there keeps |2u| below 87, so e^(-2u) is a normal
// number, its reciprocal is one, and no product is inf * 0.
constexpr float kGeluLimit = 9.98f;

// What the function and its derivative share.
struct GeluParts {
  V low;            // x where it is at least -kGeluLimit
  V x;              // clamped at both ends; NaN stays NaN, here and in `low`
  V square;         // x^2
  V e, one_plus_e;  // e^(-2u); anything where x is NaN
};

// NaN stays NaN: of a NaN and a number, Max and Min give their second argument on x86 and the NaN on NEON, but the
// number on EMU128.
HWY_INLINE V AtLeast(float low, V x) {
  const V bound = hn::Set(d, low);
  if constexpr (HWY_TARGET == HWY_EMU128) return hn::IfThenElse(hn::Lt(x, bound), bound, x);
  return hn::Max(bound, x);
}
HWY_INLINE V AtMost(float high, V x) {
  const V bound = hn::Set(d, high);
  if constexpr (HWY_TARGET == HWY_EMU128) return hn::IfThenElse(hn::Gt(x, bound), bound, x);
  return hn::Min(bound, x);
}

HWY_INLINE GeluParts PrepareGelu(V x) {
  GeluParts parts;
  parts.low = AtLeast(-kGeluLimit, x);
  parts.x = AtMost(kGeluLimit, parts.low);
  parts.square = hn::Mul(parts.x, parts.x);
  parts.e = ExpNormal(hn::Mul(parts.x, hn::MulAdd(parts.square, hn::Set(d, kGeluB), hn::Set(d, kGeluA))));
  parts.one_plus_e = hn::Add(parts.e, hn::Set(d, 1.0f));
  return parts;
}

// x / (1 + e^(-2u)). Above kGeluLimit, 1 + e is 1 and the quotient x.
HWY_INLINE V Gelu(const GeluParts& parts) { return hn::Div(parts.low, parts.one_plus_e); }
HWY_INLINE V Gelu(V x) { return Gelu(PrepareGelu(x)); }

// With e = e^(-2u) and s = 1 / (1 + e): s + x s (1 - s) 2u'. 1 - s is taken as e s, which does not cancel.
HWY_INLINE V GeluDerivative(const GeluParts& parts) {
  const V s = hn::Div(hn::Set(d, 1.0f), parts.one_plus_e);
  const V slope = hn::MulAdd(parts.square, hn::Set(d, -3.0f * kGeluB), hn::Set(d, -kGeluA));  // 2u'
  return hn::MulAdd(hn::Mul(hn::Mul(parts.e, s), hn::Mul(parts.x, slope)), s, s);
}
HWY_INLINE V GeluDerivative(V x) { return GeluDerivative(PrepareGelu(x)); }

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GELU_INL_H_
