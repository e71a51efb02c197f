#include "kernels/muon.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/muon.cc"
#include "hwy/foreach_target.h"
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr DType kF32 = DType::kF32;

HWY_INLINE V Nesterov(V momentum, V rest, V gradient, V m, V& direction) {
  const V part = hn::Mul(rest, gradient), next = hn::MulAdd(momentum, m, part);
  direction = hn::MulAdd(momentum, next, part);
  return next;
}

HWY_INLINE V Applied(V rate, V scale, V decay, V p, V direction) {
  return hn::NegMulAdd(rate, hn::MulAdd(decay, p, hn::Mul(scale, direction)), p);
}

}  // namespace

void MomentumAll(const Momentum& options, float* m, const float* gradient, float* direction, size_t n) {
  const V momentum = hn::Set(d, options.momentum), scale = hn::Set(d, options.gradient_scale);
  const V rest = hn::Set(d, static_cast<float>(1.0 - static_cast<double>(options.momentum)));
  V out;
  size_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V g = hn::Mul(hn::LoadU(d, gradient + i), scale);
    hn::StoreU(Nesterov(momentum, rest, g, hn::LoadU(d, m + i), out), d, m + i);
    hn::StoreU(out, d, direction + i);
  }
  if (i == n) return;
  const V g = hn::Mul(LoadNAs<kF32>(gradient + i, n - i), scale);
  StoreNAs<kF32>(Nesterov(momentum, rest, g, LoadNAs<kF32>(m + i, n - i), out), m + i, n - i);
  StoreNAs<kF32>(out, direction + i, n - i);
}

void ApplyDirectionAll(const MatrixUpdate& options, float* p, const float* direction, size_t n) {
  const V rate = hn::Set(d, options.rate), scale = hn::Set(d, options.scale), decay = hn::Set(d, options.weight_decay);
  size_t i = 0;
  for (; i + kN <= n; i += kN) {
    hn::StoreU(Applied(rate, scale, decay, hn::LoadU(d, p + i), hn::LoadU(d, direction + i)), d, p + i);
  }
  if (i == n) return;
  const V x = LoadNAs<kF32>(p + i, n - i), y = LoadNAs<kF32>(direction + i, n - i);
  StoreNAs<kF32>(Applied(rate, scale, decay, x, y), p + i, n - i);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(MomentumAll);
HWY_EXPORT(ApplyDirectionAll);

void momentum(const Momentum& options, float* m, const float* gradient, float* direction, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(MomentumAll)(options, m, gradient, direction, n);
}

void apply_direction(const MatrixUpdate& options, float* p, const float* direction, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(ApplyDirectionAll)(options, p, direction, n);
}

}  // namespace quern::kernels
#endif
