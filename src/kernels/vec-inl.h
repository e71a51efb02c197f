// Code shared by the vector kernels, compiled once per target: vector types, 16 virtual lanes, exp. Included by kernel
// .cc files after hwy/foreach_target.h; everything is in quern::kernels::HWY_NAMESPACE.
#if defined(QUERN_KERNELS_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_VEC_INL_H_
#undef QUERN_KERNELS_VEC_INL_H_
#else
#define QUERN_KERNELS_VEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
constexpr D d;
constexpr DI di;

constexpr size_t kN = HWY_MAX_BYTES / sizeof(float);  // floats in a vector: 4 (scalar, SSE4, NEON), 8 (AVX2), 16 (AVX3)
constexpr bool kEmulated = HWY_TARGET == HWY_EMU128;  // plain C++: the reference tier, tuned to compile fast
constexpr size_t kVirtualLanes = 16;
constexpr size_t kParts = kVirtualLanes / kN;  // vectors in the 16 virtual lanes
static_assert(kN * kParts == kVirtualLanes && kParts <= 4);

// Sixteen floats, regardless of the actual vector width: element i of a row belongs to virtual lane i % 16, and the
// lanes are folded in one fixed tree, so a row reduction is bit-identical on every target with fused multiply-add. The
// members are named because g++ 12 puts an array of vectors in memory. Parts past kParts are unused.
struct V16 {
  V p0, p1, p2, p3;
};

// f applied to each actual vector of the arguments: Map([](V a, V b) HWY_ATTR { return hn::Add(a, b); }, x, y).
template <class F, class... X>
HWY_INLINE V16 Map(F f, const X&... x) {
  V16 r;
  r.p0 = f(x.p0...);
  if constexpr (kParts > 1) r.p1 = f(x.p1...);
  if constexpr (kParts > 2) {
    r.p2 = f(x.p2...);
    r.p3 = f(x.p3...);
  }
  return r;
}

HWY_INLINE V16 Set16(float value) {
  const V v = hn::Set(d, value);
  return {v, v, v, v};
}

HWY_INLINE V16 Load16(const float* HWY_RESTRICT p) {
  V16 r;
  r.p0 = hn::LoadU(d, p);
  if constexpr (kParts > 1) r.p1 = hn::LoadU(d, p + kN);
  if constexpr (kParts > 2) {
    r.p2 = hn::LoadU(d, p + 2 * kN);
    r.p3 = hn::LoadU(d, p + 3 * kN);
  }
  return r;
}

// The first n < 16 floats at p, the other lanes `fill`. Reads nothing past p + n.
HWY_INLINE V16 LoadN16(const float* HWY_RESTRICT p, size_t n, float fill = 0.0f) {
  HWY_ALIGN float buffer[kVirtualLanes];
  for (float& value : buffer) value = fill;
  std::memcpy(buffer, p, n * sizeof(float));
  return Load16(buffer);
}

HWY_INLINE void Store16(const V16& x, float* HWY_RESTRICT p) {
  hn::StoreU(x.p0, d, p);
  if constexpr (kParts > 1) hn::StoreU(x.p1, d, p + kN);
  if constexpr (kParts > 2) {
    hn::StoreU(x.p2, d, p + 2 * kN);
    hn::StoreU(x.p3, d, p + 3 * kN);
  }
}

// The first n < 16 floats at p, the other lanes as in `fill`. Reads nothing past p + n.
HWY_INLINE V16 MergeN16(const float* HWY_RESTRICT p, size_t n, const V16& fill) {
  HWY_ALIGN float buffer[kVirtualLanes];
  Store16(fill, buffer);
  std::memcpy(buffer, p, n * sizeof(float));
  return Load16(buffer);
}

// Writes the first n < 16 lanes, nothing past p + n.
HWY_INLINE void StoreN16(const V16& x, float* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN float buffer[kVirtualLanes];
  Store16(x, buffer);
  std::memcpy(p, buffer, n * sizeof(float));
}

// Sixteen elements, or the n < 16 at the end of a row, followed by lanes of `fill`.
template <bool kEnd>
HWY_INLINE V16 LoadStep(const float* HWY_RESTRICT p, size_t n, const V16& fill) {
  if constexpr (kEnd) return MergeN16(p, n, fill);
  return Load16(p);
}
template <bool kEnd>
HWY_INLINE void StoreStep(const V16& x, float* HWY_RESTRICT p, size_t n) {
  if constexpr (kEnd) return StoreN16(x, p, n);
  Store16(x, p);
}

HWY_INLINE V16 Add16(const V16& a, const V16& b) {
  return Map([](V x, V y) HWY_ATTR { return hn::Add(x, y); }, a, b);
}
HWY_INLINE V16 Sub16(const V16& a, const V16& b) {
  return Map([](V x, V y) HWY_ATTR { return hn::Sub(x, y); }, a, b);
}
HWY_INLINE V16 Mul16(const V16& a, const V16& b) {
  return Map([](V x, V y) HWY_ATTR { return hn::Mul(x, y); }, a, b);
}
// a * b + c, with one rounding if the target supports it.
HWY_INLINE V16 MulAdd16(const V16& a, const V16& b, const V16& c) {
  return Map([](V x, V y, V z) HWY_ATTR { return hn::MulAdd(x, y, z); }, a, b, c);
}
HWY_INLINE V16 Max16(const V16& a, const V16& b) {
  return Map([](V x, V y) HWY_ATTR { return hn::Max(x, y); }, a, b);
}

// Folds the 16 lanes with `op`: lane l with l + 8, then l + 4, l + 2, l + 1. `op` takes a tag and two vectors.
template <class Op>
HWY_INLINE float Fold16(const V16& x, Op op) {
  const hn::FixedTag<float, 4> d4;
  hn::Vec<decltype(d4)> q;
  if constexpr (kN == 16) {
    const hn::Half<D> dh;
    const hn::Half<decltype(dh)> dq;
    const auto h = op(hn::LowerHalf(dh, x.p0), hn::UpperHalf(dh, x.p0));
    q = op(hn::LowerHalf(dq, h), hn::UpperHalf(dq, h));
  } else if constexpr (kN == 8) {
    const hn::Half<D> dh;
    const auto h = op(x.p0, x.p1);
    q = op(hn::LowerHalf(dh, h), hn::UpperHalf(dh, h));
  } else {
    q = op(op(x.p0, x.p2), op(x.p1, x.p3));
  }
  q = op(q, hn::Shuffle1032(q));
  q = op(q, hn::Shuffle2301(q));
  return hn::GetLane(q);
}
HWY_INLINE float Sum16(const V16& x) {
  return Fold16(x, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}
HWY_INLINE float MaxLane16(const V16& x) {
  return Fold16(x, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

// f(0), f(1), ... f(n - 1) with constants as arguments: the indices are known before g++ decides where to put an array
// of vectors. With a loop it decides too late, and the accumulators end up in memory (half the speed, measured with g++
// 12).
template <class F, size_t... i>
HWY_INLINE void UnrollOver([[maybe_unused]] F f, std::index_sequence<i...>) {
  (f(std::integral_constant<size_t, i>()), ...);
}
template <size_t n, class F>
HWY_INLINE void Unroll(F f) {
  UnrollOver(f, std::make_index_sequence<n>());
}

// max(x, low) and min(x, high).
// NaN remains NaN: given a NaN and a number, Max and Min return their second argument on x86 and the NaN on NEON, but
// the number on EMU128.
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

// e^x for -87.3 <= x <= 88.72, within 2 ulp; undefined outside, and not necessarily NaN for a NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r = 1 + r + r^2 P(r), P of degree 4 fitted at Chebyshev nodes (relative error
// 1e-8). Adding 1.5 * 2^23 rounds to an integer whose bits are in the low mantissa, which becomes the exponent.
HWY_INLINE V ExpNormal(V x) {
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::MulAdd(n, hn::Set(d, -0.693359375f), x);  // ln 2 in two parts: n * the first is exact
  r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
  V p = hn::Set(d, 0.00139262508f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836323288f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416665542f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665767f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const VI exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}
// The same, but 0 below -87.3. A NaN passes through all steps; the bits that its exponent adds are zeros, unless a
// caller made a NaN with a custom payload.
HWY_INLINE V ExpBounded(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), ExpNormal(x)); }
// The same, clamped to e^88.72 above; any NaN remains NaN.
HWY_INLINE V Exp(V x) { return hn::IfThenElse(hn::Eq(x, x), ExpBounded(hn::Min(hn::Set(d, 88.72f), x)), x); }
HWY_INLINE V16 Exp16(const V16& x) {
  return Map([](V v) HWY_ATTR { return Exp(v); }, x);
}
HWY_INLINE V16 ExpBounded16(const V16& x) {
  return Map([](V v) HWY_ATTR { return ExpBounded(v); }, x);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_VEC_INL_H_
