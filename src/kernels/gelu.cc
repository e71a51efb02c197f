#include "kernels/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gelu.cc"
#include "hwy/foreach_target.h"

#include "kernels/gelu-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

void GeluForward(const float* x, float* out, size_t n) {
  size_t i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(Gelu(hn::LoadU(d, x + i)), d, out + i);
  if (i == n) return;
  const V16 rest = LoadN16(x + i, n - i);
  StoreN16(Map([](V v) HWY_ATTR { return Gelu(v); }, rest), out + i, n - i);
}

void GeluBackward(const float* x, const float* dout, float* dx, size_t n) {
  size_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V gradient = hn::Mul(hn::LoadU(d, dout + i), GeluDerivative(hn::LoadU(d, x + i)));
    hn::StoreU(gradient, d, dx + i);
  }
  if (i == n) return;
  const V16 rest = Map([](V v, V g) HWY_ATTR { return hn::Mul(g, GeluDerivative(v)); }, LoadN16(x + i, n - i),
                       LoadN16(dout + i, n - i));
  StoreN16(rest, dx + i, n - i);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(GeluForward);
HWY_EXPORT(GeluBackward);

void gelu_forward(const float* x, float* out, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(GeluForward)(x, out, n); }

void gelu_backward(const float* x, const float* dout, float* dx, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(GeluBackward)(x, dout, dx, n);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
