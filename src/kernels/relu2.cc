#include "kernels/relu2.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/relu2.cc"
#include "hwy/foreach_target.h"

#include "kernels/convert-inl.h"
#include "kernels/relu2-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// The gradient times 2 max(x, 0); the doubling is exact.
HWY_INLINE V Relu2Gradient(V positive, V gradient) { return hn::Mul(gradient, hn::Add(positive, positive)); }

template <DType kType>
HWY_INLINE void ForwardBackward(const void* input, float* HWY_RESTRICT gradient, float* HWY_RESTRICT out, size_t n) {
  const auto* HWY_RESTRICT x = static_cast<const Stored<kType>*>(input);
  size_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V positive = AtLeast(0.0f, LoadAs<kType>(x + i));
    hn::StoreU(Relu2OfPositive(positive), d, out + i);
    hn::StoreU(Relu2Gradient(positive, hn::LoadU(d, gradient + i)), d, gradient + i);
  }
  if (i == n) return;
  const V positive = AtLeast(0.0f, LoadNAs<kType>(x + i, n - i));
  const V rest = Relu2Gradient(positive, LoadNAs<DType::kF32>(gradient + i, n - i));
  StoreNAs<DType::kF32>(Relu2OfPositive(positive), out + i, n - i);
  StoreNAs<DType::kF32>(rest, gradient + i, n - i);
}

}  // namespace

void Relu2ForwardBackward(const void* input, DType type, float* gradient, float* out, size_t n) {
  switch (type) {
    case DType::kF32:
      return ForwardBackward<DType::kF32>(input, gradient, out, n);
    case DType::kBF16:
      return ForwardBackward<DType::kBF16>(input, gradient, out, n);
    case DType::kF16:
      return ForwardBackward<DType::kF16>(input, gradient, out, n);
  }
}

void Relu2Forward(const float* x, float* out, size_t n) {
  size_t i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(Relu2(hn::LoadU(d, x + i)), d, out + i);
  if (i < n) StoreNAs<DType::kF32>(Relu2(LoadNAs<DType::kF32>(x + i, n - i)), out + i, n - i);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(Relu2Forward);
HWY_EXPORT(Relu2ForwardBackward);

void relu2_forward(const float* x, float* out, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(Relu2Forward)(x, out, n); }

void relu2_forward_backward(const void* input, DType type, float* gradient, float* out, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(Relu2ForwardBackward)(input, type, gradient, out, n);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
