// Loads and stores of bf16 and fp16 as vectors of fp32, compiled once per target; bit-identical on every target.
// Included by kernel .cc files after hwy/foreach_target.h.
//
// Stores round to nearest even: overflow becomes infinity, subnormals are preserved. NaN retains its sign and the top
// bits of its payload and becomes quiet, as in the hardware conversion; the integer code reproduces this. fp16 loads
// make NaN quiet too; bf16 loads only shift. Highway 1.0.3 truncates to bf16 everywhere and to fp16 on targets without
// F16C, so only its F16C instructions (AVX2 and up) are used.
#if defined(QUERN_KERNELS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_CONVERT_INL_H_
#undef QUERN_KERNELS_CONVERT_INL_H_
#else
#define QUERN_KERNELS_CONVERT_INL_H_
#endif

#include <type_traits>

#include "kernels/types.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

using DHalf = hn::Rebind<uint16_t, D>;  // kN halves: half a vector
using DF16 = hn::Rebind<hwy::float16_t, D>;
using VHalf = hn::Vec<DHalf>;
constexpr DHalf dhalf;

constexpr bool kHasF16C = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;  // in Highway a lower number is a better target

HWY_INLINE V PromoteBF16(VHalf h) { return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(di, h))); }

// Adds 0x7FFF, plus 1 if the retained part is odd: a carry into the exponent is the correct rounding, up to infinity.
// The upper half of each lane is the result. Not for NaN.
HWY_INLINE V RoundNumberBF16(V x) {
  const VI bits = hn::BitCast(di, x);
  const VI odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 1));
  return hn::BitCast(d, hn::Add(bits, hn::Add(odd, hn::Set(di, 0x7FFF))));
}
HWY_INLINE V RoundBF16(V x) {
  return hn::IfThenElse(hn::IsNaN(x), hn::Or(x, hn::BitCast(d, hn::Set(di, 1 << 22))), RoundNumberBF16(x));
}
HWY_INLINE VHalf DemoteBF16(V x) {
  const hn::RebindToUnsigned<D> du;
  return hn::DemoteTo(dhalf, hn::BitCast(di, hn::ShiftRight<16>(hn::BitCast(du, RoundBF16(x)))));
}

// The exponent is rebased by integer addition. A subnormal is placed below the exponent of 2^-14, as if it had a
// leading one, and an exact float subtraction removes that again. Not inlined: targets without F16C are not optimized
// for speed, and a sanitizer build with many inlined copies takes minutes.
inline HWY_NOINLINE V PromoteF16ByInteger(VHalf h) {
  const VI rebase = hn::Set(di, (127 - 15) << 23);
  const VI bits = hn::PromoteTo(di, h);
  const VI magnitude = hn::And(bits, hn::Set(di, 0x7FFF));
  const VI shifted = hn::Add(hn::ShiftLeft<13>(magnitude), rebase);
  const V min = hn::BitCast(d, hn::Set(di, (127 - 14) << 23));
  const V subnormal = hn::Sub(hn::BitCast(d, hn::Add(shifted, hn::Set(di, 1 << 23))), min);
  VI result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x0400)), hn::BitCast(di, subnormal), shifted);
  result = hn::Add(result, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(di, 0x7BFF)), rebase));
  result = hn::Or(result, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(di, 0x7C00)), hn::Set(di, 1 << 22)));
  return hn::BitCast(d, hn::Or(result, hn::ShiftLeft<16>(hn::Sub(bits, magnitude))));
}

// Normal results round as in DemoteBF16. For subnormal ones, adding 0.5 (whose last bit is 2^-24, the smallest fp16
// value) makes the float addition round. The largest finite value that rounds to infinity is below 2^16; from there on
// the result is infinity.
inline HWY_NOINLINE VHalf DemoteF16ByInteger(V x) {
  const VI bits = hn::BitCast(di, x);
  const VI magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
  const VI sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
  const VI odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
  const VI normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(di, 0xFFF - ((127 - 15) << 23))), odd));
  const V half = hn::Set(d, 0.5f);
  const VI subnormal = hn::Sub(hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(di, half));
  const VI quiet = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 0x3FF)), hn::Set(di, 0x7E00));
  VI result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, (127 - 14) << 23)), subnormal, normal);
  result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, (127 + 16) << 23)), result, hn::Set(di, 0x7C00));
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7F800000)), quiet, result);
  return hn::DemoteTo(dhalf, hn::Or(result, sign));
}

HWY_INLINE V PromoteF16(VHalf h) {
  if constexpr (kHasF16C) return hn::PromoteTo(d, hn::BitCast(DF16(), h));
  return PromoteF16ByInteger(h);
}
HWY_INLINE VHalf DemoteF16(V x) {
  if constexpr (kHasF16C) return hn::BitCast(dhalf, hn::DemoteTo(DF16(), x));
  return DemoteF16ByInteger(x);
}

// kN elements at p, any alignment.
HWY_INLINE V FromBF16(const Half* HWY_RESTRICT p) { return PromoteBF16(hn::LoadU(dhalf, p)); }
HWY_INLINE V FromF16(const Half* HWY_RESTRICT p) { return PromoteF16(hn::LoadU(dhalf, p)); }
HWY_INLINE void ToBF16(V x, Half* HWY_RESTRICT p) { hn::StoreU(DemoteBF16(x), dhalf, p); }
HWY_INLINE void ToF16(V x, Half* HWY_RESTRICT p) { hn::StoreU(DemoteF16(x), dhalf, p); }

// Stores 4 kN elements in full vectors. A branch taken only for NaN is cheaper than blending. The sum of the vectors is
// NaN if one of them is; if it is NaN for another reason (inf - inf), the slow path is correct too.
HWY_INLINE void ToBF16x4(V a, V b, V c, V e, Half* HWY_RESTRICT p) {
  const hn::Repartition<uint16_t, D> dfull;
  const auto pack = [&](V low, V high, Half* HWY_RESTRICT to) HWY_ATTR {
    hn::StoreU(hn::ConcatOdd(dfull, hn::BitCast(dfull, high), hn::BitCast(dfull, low)), dfull, to);
  };
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(hn::Add(hn::Add(a, b), hn::Add(c, e)))))) {
    pack(RoundNumberBF16(a), RoundNumberBF16(b), p);
    pack(RoundNumberBF16(c), RoundNumberBF16(e), p + 2 * kN);
  } else {
    pack(RoundBF16(a), RoundBF16(b), p);
    pack(RoundBF16(c), RoundBF16(e), p + 2 * kN);
  }
}

// The element type of an array of `kType`: float or Half.
template <DType kType>
using Stored = std::conditional_t<kType == DType::kF32, float, Half>;

// kN elements of any format.
template <DType kType>
HWY_INLINE V LoadAs(const Stored<kType>* HWY_RESTRICT p) {
  if constexpr (kType == DType::kF32) return hn::LoadU(d, p);
  if constexpr (kType == DType::kBF16) return FromBF16(p);
  if constexpr (kType == DType::kF16) return FromF16(p);
}
template <DType kType>
HWY_INLINE void StoreAs(V x, Stored<kType>* HWY_RESTRICT p) {
  if constexpr (kType == DType::kF32) hn::StoreU(x, d, p);
  if constexpr (kType == DType::kBF16) ToBF16(x, p);
  if constexpr (kType == DType::kF16) ToF16(x, p);
}

// 4 kN elements.
template <DType kType>
HWY_INLINE void StoreAsx4(V a, V b, V c, V e, Stored<kType>* HWY_RESTRICT p) {
  if constexpr (kType == DType::kBF16) return ToBF16x4(a, b, c, e, p);
  StoreAs<kType>(a, p);
  StoreAs<kType>(b, p + kN);
  StoreAs<kType>(c, p + 2 * kN);
  StoreAs<kType>(e, p + 3 * kN);
}

// The first n < kN elements; the other lanes load as 0 and are not stored. Touches nothing past p + n.
template <DType kType>
HWY_INLINE V LoadNAs(const Stored<kType>* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN Stored<kType> buffer[kN] = {};
  std::memcpy(buffer, p, n * sizeof(*p));
  return LoadAs<kType>(buffer);
}
template <DType kType>
HWY_INLINE void StoreNAs(V x, Stored<kType>* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN Stored<kType> buffer[kN];
  StoreAs<kType>(x, buffer);
  std::memcpy(p, buffer, n * sizeof(*p));
}

// The value of x after a store and a load.
template <DType kType>
HWY_INLINE V Rounded(V x) {
  if constexpr (kType == DType::kF32) return x;
  if constexpr (kType == DType::kBF16) return hn::And(RoundBF16(x), hn::BitCast(d, hn::Set(di, -65536)));
  if constexpr (kType == DType::kF16) return PromoteF16(DemoteF16(x));
}
template <DType kType>
HWY_INLINE V16 Rounded16(const V16& x) {
  return Map([](V v) HWY_ATTR { return Rounded<kType>(v); }, x);
}

// Sixteen elements of any format, or the n < 16 at the end of a row, padded with zeros.
template <DType kType, bool kEnd>
HWY_INLINE V16 LoadStepAs(const Stored<kType>* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN Stored<kType> buffer[kVirtualLanes];
  if constexpr (kEnd) {
    std::memset(buffer, 0, sizeof(buffer));
    std::memcpy(buffer, p, n * sizeof(*p));
    p = buffer;
  }
  V16 r;
  r.p0 = LoadAs<kType>(p);
  if constexpr (kParts > 1) r.p1 = LoadAs<kType>(p + kN);
  if constexpr (kParts > 2) {
    r.p2 = LoadAs<kType>(p + 2 * kN);
    r.p3 = LoadAs<kType>(p + 3 * kN);
  }
  return r;
}
template <DType kType>
HWY_INLINE void Store16As(const V16& x, Stored<kType>* HWY_RESTRICT p) {
  StoreAs<kType>(x.p0, p);
  if constexpr (kParts > 1) StoreAs<kType>(x.p1, p + kN);
  if constexpr (kParts > 2) {
    StoreAs<kType>(x.p2, p + 2 * kN);
    StoreAs<kType>(x.p3, p + 3 * kN);
  }
}
template <DType kType, bool kEnd>
HWY_INLINE void StoreStepAs(const V16& x, Stored<kType>* HWY_RESTRICT p, size_t n) {
  if constexpr (!kEnd) return Store16As<kType>(x, p);
  HWY_ALIGN Stored<kType> buffer[kVirtualLanes];
  Store16As<kType>(x, buffer);
  std::memcpy(p, buffer, n * sizeof(*p));
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_CONVERT_INL_H_
