// GELU on one vector, compiled once per target. Shared by gelu.cc and the GEMM epilogue, so both are bit-identical.
// Included by kernel .cc files after hwy/foreach_target.h, like vec-inl.h.
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

// Beyond this, gelu(x) is 0 or x in fp32, to within 2e-37. Clamping here keeps |2u| below 87, so e^(-2u) and its
// reciprocal are normal numbers, and no product is inf * 0.
constexpr float kGeluLimit = 9.98f;

// Common terms of the function and its derivative.
struct GeluParts {
  V low;            // max(x, -kGeluLimit)
  V x;              // clamped at both ends; NaN remains NaN, here and in `low`
  V square;         // x^2
  V e, one_plus_e;  // e^(-2u); arbitrary if x is NaN
};

HWY_INLINE GeluParts PrepareGelu(V x) {
  GeluParts parts;
  parts.low = AtLeast(-kGeluLimit, x);
  parts.x = AtMost(kGeluLimit, parts.low);
  parts.square = hn::Mul(parts.x, parts.x);
  parts.e = ExpNormal(hn::Mul(parts.x, hn::MulAdd(parts.square, hn::Set(d, kGeluB), hn::Set(d, kGeluA))));
  parts.one_plus_e = hn::Add(parts.e, hn::Set(d, 1.0f));
  return parts;
}

// x / (1 + e^(-2u)). Above kGeluLimit, 1 + e is 1 and the quotient is x.
HWY_INLINE V Gelu(const GeluParts& parts) { return hn::Div(parts.low, parts.one_plus_e); }
HWY_INLINE V Gelu(V x) { return Gelu(PrepareGelu(x)); }

// Gelu in place for n vectors, one step at a time for all of them: a chain of 20 steps of 4 cycles each keeps the units
// busy only if several chains run at once, and more of them fit the scheduler when interleaved. The steps of e^(-2u)
// are those of ExpNormal. Below -87 the exponential adds nothing to 1, so it can stay at e^-87: large x make x^2
// infinite, -2u -infinity and the quotient x. A NaN is the numerator, and therefore the quotient.
template <size_t n>
HWY_INLINE void GeluEach(V (&x)[n]) {
  const V magic = hn::Set(d, 12582912.0f), one = hn::Set(d, 1.0f);
  V y[n], shifted[n], r[n], p[n];
  const auto each = [](auto step) HWY_ATTR { Unroll<n>(step); };
  each([&](auto i) HWY_ATTR { x[i] = AtLeast(-kGeluLimit, x[i]); });
  each([&](auto i) HWY_ATTR { y[i] = hn::Mul(x[i], x[i]); });
  each([&](auto i) HWY_ATTR { y[i] = hn::MulAdd(y[i], hn::Set(d, kGeluB), hn::Set(d, kGeluA)); });
  each([&](auto i) HWY_ATTR { y[i] = hn::Mul(x[i], y[i]); });
  each([&](auto i) HWY_ATTR { y[i] = hn::Max(y[i], hn::Set(d, -87.0f)); });
  each([&](auto i) HWY_ATTR { shifted[i] = hn::MulAdd(y[i], hn::Set(d, 1.44269504f), magic); });
  each([&](auto i) HWY_ATTR { p[i] = hn::Sub(shifted[i], magic); });
  each([&](auto i) HWY_ATTR { r[i] = hn::MulAdd(p[i], hn::Set(d, -0.693359375f), y[i]); });
  each([&](auto i) HWY_ATTR { r[i] = hn::MulAdd(p[i], hn::Set(d, 2.12194440e-4f), r[i]); });
  each([&](auto i) HWY_ATTR { p[i] = hn::MulAdd(hn::Set(d, 0.00139262508f), r[i], hn::Set(d, 0.00836323288f)); });
  each([&](auto i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, 0.0416665542f)); });
  each([&](auto i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, 0.166665767f)); });
  each([&](auto i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, 0.5f)); });
  each([&](auto i) HWY_ATTR { p[i] = hn::MulAdd(p[i], hn::Mul(r[i], r[i]), hn::Add(r[i], one)); });
  each([&](auto i) HWY_ATTR {
    p[i] = hn::BitCast(d, hn::Add(hn::BitCast(di, p[i]), hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]))));
  });
  each([&](auto i) HWY_ATTR { x[i] = hn::Div(x[i], hn::Add(p[i], one)); });
}

// With e = e^(-2u) and s = 1 / (1 + e): s + x s (1 - s) 2u'. 1 - s is computed as e s, which avoids cancellation.
HWY_INLINE V GeluDerivative(const GeluParts& parts) {
  const V s = hn::Div(hn::Set(d, 1.0f), parts.one_plus_e);
  const V slope = hn::MulAdd(parts.square, hn::Set(d, -3.0f * kGeluB), hn::Set(d, -kGeluA));  // 2u'
  return hn::MulAdd(hn::Mul(hn::Mul(parts.e, s), hn::Mul(parts.x, slope)), s, s);
}
HWY_INLINE V GeluDerivative(V x) { return GeluDerivative(PrepareGelu(x)); }

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GELU_INL_H_
