#include "kernels/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/swiglu.cc"
#include "hwy/foreach_target.h"

#include "kernels/convert-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// Beyond this, silu(x) is 0 or x in fp32, to within 2e-36, and e^-x is still a normal number.
constexpr float kSiluLimit = 87.0f;

// Common terms of silu and its derivative.
struct SiluParts {
  V low;            // max(x, -kSiluLimit)
  V x;              // clamped at both ends; NaN remains NaN, here and in `low`
  V e, one_plus_e;  // e^-x; arbitrary if x is NaN
};

HWY_INLINE SiluParts PrepareSilu(V x) {
  SiluParts parts;
  parts.low = AtLeast(-kSiluLimit, x);
  parts.x = AtMost(kSiluLimit, parts.low);
  parts.e = ExpNormal(hn::Neg(parts.x));
  parts.one_plus_e = hn::Add(parts.e, hn::Set(d, 1.0f));
  return parts;
}

HWY_INLINE V Silu(const SiluParts& parts) { return hn::Div(parts.low, parts.one_plus_e); }

HWY_INLINE V SiluDerivative(const SiluParts& parts) {
  const V s = hn::Div(hn::Set(d, 1.0f), parts.one_plus_e);
  return hn::MulAdd(hn::Mul(hn::Mul(parts.e, s), parts.x), s, s);
}

HWY_INLINE V Swiglu(V gate, V up) { return hn::Mul(Silu(PrepareSilu(gate)), up); }

struct Gradients {
  V gate, up, out;
};
HWY_INLINE Gradients SwigluGradients(V gate, V up, V dout) {
  const SiluParts parts = PrepareSilu(gate);
  const V silu = Silu(parts);
  return {hn::Mul(hn::Mul(dout, up), SiluDerivative(parts)), hn::Mul(dout, silu), hn::Mul(silu, up)};
}

template <DType kType>
HWY_INLINE void Backward(const SwigluBackward& args, size_t n) {
  const auto* HWY_RESTRICT gate = static_cast<const Stored<kType>*>(args.gate.data);
  const auto* HWY_RESTRICT up = static_cast<const Stored<kType>*>(args.up.data);
  float *HWY_RESTRICT dout = args.dout, *HWY_RESTRICT dup = args.dup, *HWY_RESTRICT out = args.out;
  size_t i = 0;
  for (; i + kN <= n; i += kN) {
    const Gradients g = SwigluGradients(LoadAs<kType>(gate + i), LoadAs<kType>(up + i), hn::LoadU(d, dout + i));
    hn::StoreU(g.gate, d, dout + i);
    hn::StoreU(g.up, d, dup + i);
    hn::StoreU(g.out, d, out + i);
  }
  if (i == n) return;
  const Gradients g = SwigluGradients(LoadNAs<kType>(gate + i, n - i), LoadNAs<kType>(up + i, n - i),
                                      LoadNAs<DType::kF32>(dout + i, n - i));
  StoreNAs<DType::kF32>(g.gate, dout + i, n - i);
  StoreNAs<DType::kF32>(g.up, dup + i, n - i);
  StoreNAs<DType::kF32>(g.out, out + i, n - i);
}

}  // namespace

void SwigluForward(const float* gate, const float* up, float* out, size_t n) {
  size_t i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(Swiglu(hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, out + i);
  if (i == n) return;
  const V rest = Swiglu(LoadNAs<DType::kF32>(gate + i, n - i), LoadNAs<DType::kF32>(up + i, n - i));
  StoreNAs<DType::kF32>(rest, out + i, n - i);
}

void SwigluBackwardAny(const SwigluBackward& args, size_t n) {
  switch (args.gate.type) {
    case DType::kF32:
      return Backward<DType::kF32>(args, n);
    case DType::kBF16:
      return Backward<DType::kBF16>(args, n);
    case DType::kF16:
      return Backward<DType::kF16>(args, n);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(SwigluForward);
HWY_EXPORT(SwigluBackwardAny);

void swiglu_forward(const float* gate, const float* up, float* out, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(SwigluForward)(gate, up, out, n);
}

void swiglu_backward(const SwigluBackward& args, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(SwigluBackwardAny)(args, n);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
