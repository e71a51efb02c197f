#include "kernels/adamw.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

struct Element {
  V p, m, v;
};

// 1 / (1 - beta^step)
HWY_INLINE V BiasCorrection(float beta, int64_t step) {
  const double power = std::pow(static_cast<double>(beta), static_cast<double>(step));
  return hn::Set(d, static_cast<float>(1.0 / (1.0 - power)));
}

HWY_INLINE V OneMinus(float beta) { return hn::Set(d, static_cast<float>(1.0 - static_cast<double>(beta))); }

// The order of operations in adamw.h. Ten constants and five values: 15 of 16 ymm.
class Update {
 public:
  HWY_INLINE explicit Update(const AdamW& options)
      : scale_(hn::Set(d, options.gradient_scale)),
        beta1_(hn::Set(d, options.beta1)),
        rest1_(OneMinus(options.beta1)),
        beta2_(hn::Set(d, options.beta2)),
        rest2_(OneMinus(options.beta2)),
        correction1_(BiasCorrection(options.beta1, options.step)),
        correction2_(BiasCorrection(options.beta2, options.step)),
        epsilon_(hn::Set(d, options.epsilon)),
        decay_(hn::Set(d, options.weight_decay)),
        rate_(hn::Set(d, options.rate)) {}

  HWY_INLINE Element operator()(Element x, V gradient) const {
    const V g = hn::Mul(gradient, scale_);
    const V m = hn::MulAdd(beta1_, x.m, hn::Mul(rest1_, g));
    const V v = hn::MulAdd(beta2_, x.v, hn::Mul(hn::Mul(rest2_, g), g));
    const V root = hn::Sqrt(hn::Mul(v, correction2_));
    const V direction = hn::Div(hn::Mul(m, correction1_), hn::Add(root, epsilon_));
    const V p = hn::NegMulAdd(rate_, hn::MulAdd(decay_, x.p, direction), x.p);
    return {p, m, v};
  }

 private:
  V scale_, beta1_, rest1_, beta2_, rest2_, correction1_, correction2_, epsilon_, decay_, rate_;
};

// Prefetch distance in floats (2 KB).
constexpr size_t kAhead = 512;

struct Arrays {
  float* HWY_RESTRICT p;
  const float* HWY_RESTRICT gradient;
  float* HWY_RESTRICT m;
  float* HWY_RESTRICT v;
};

// Updates kN elements from i on.
HWY_INLINE void Step(const Update& update, const Arrays& a, size_t i) {
  const Element x =
      update({hn::LoadU(d, a.p + i), hn::LoadU(d, a.m + i), hn::LoadU(d, a.v + i)}, hn::LoadU(d, a.gradient + i));
  hn::StoreU(x.p, d, a.p + i);
  hn::StoreU(x.m, d, a.m + i);
  hn::StoreU(x.v, d, a.v + i);
}

HWY_INLINE void StepN(const Update& update, const Arrays& a, size_t i, size_t n) {
  constexpr DType kF32 = DType::kF32;
  const Element x = update({LoadNAs<kF32>(a.p + i, n), LoadNAs<kF32>(a.m + i, n), LoadNAs<kF32>(a.v + i, n)},
                           LoadNAs<kF32>(a.gradient + i, n));
  StoreNAs<kF32>(x.p, a.p + i, n);
  StoreNAs<kF32>(x.m, a.m + i, n);
  StoreNAs<kF32>(x.v, a.v + i, n);
}

HWY_INLINE void PrefetchLine(const Arrays& a, size_t i) {
  hwy::Prefetch(a.p + i);
  hwy::Prefetch(a.gradient + i);
  hwy::Prefetch(a.m + i);
  hwy::Prefetch(a.v + i);
}

}  // namespace

void AdamWUpdate(const AdamW& options, float* p, const float* gradient, float* m, float* v, size_t n) {
  const Arrays arrays = {p, gradient, m, v};
  const Update update(options);
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) {  // one cache line of each array
    PrefetchLine(arrays, i + kAhead);
    for (size_t part = 0; part < kVirtualLanes; part += kN) Step(update, arrays, i + part);
  }
  for (; i + kN <= n; i += kN) Step(update, arrays, i);
  if (i < n) StepN(update, arrays, i, n - i);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(AdamWUpdate);

void adamw(const AdamW& options, float* p, const float* gradient, float* m, float* v, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(AdamWUpdate)(options, p, gradient, m, v, n);
}

}  // namespace quern::kernels
#endif
