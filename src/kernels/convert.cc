#include "kernels/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cc"
#include "hwy/foreach_target.h"
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

template <DType kFrom, DType kTo>
HWY_INLINE void Convert(const Stored<kFrom>* HWY_RESTRICT in, Stored<kTo>* HWY_RESTRICT out, size_t n) {
  size_t i = 0;
  for (; i + 4 * kN <= n; i += 4 * kN) {
    const V a = LoadAs<kFrom>(in + i), b = LoadAs<kFrom>(in + i + kN);
    const V c = LoadAs<kFrom>(in + i + 2 * kN), e = LoadAs<kFrom>(in + i + 3 * kN);
    StoreAs<kTo>(a, out + i);
    StoreAs<kTo>(b, out + i + kN);
    StoreAs<kTo>(c, out + i + 2 * kN);
    StoreAs<kTo>(e, out + i + 3 * kN);
  }
  for (; i + kN <= n; i += kN) StoreAs<kTo>(LoadAs<kFrom>(in + i), out + i);
  if (i < n) StoreNAs<kTo>(LoadNAs<kFrom>(in + i, n - i), out + i, n - i);
}

}  // namespace

void ToBF16Array(const float* in, Half* out, size_t n) { Convert<DType::kF32, DType::kBF16>(in, out, n); }
void ToF16Array(const float* in, Half* out, size_t n) { Convert<DType::kF32, DType::kF16>(in, out, n); }
void FromBF16Array(const Half* in, float* out, size_t n) { Convert<DType::kBF16, DType::kF32>(in, out, n); }
void FromF16Array(const Half* in, float* out, size_t n) { Convert<DType::kF16, DType::kF32>(in, out, n); }

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(ToBF16Array);
HWY_EXPORT(ToF16Array);
HWY_EXPORT(FromBF16Array);
HWY_EXPORT(FromF16Array);

void to_bf16(const float* in, Half* out, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(ToBF16Array)(in, out, n); }
void to_f16(const float* in, Half* out, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(ToF16Array)(in, out, n); }
void from_bf16(const Half* in, float* out, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(FromBF16Array)(in, out, n); }
void from_f16(const Half* in, float* out, size_t n) noexcept { HWY_DYNAMIC_DISPATCH(FromF16Array)(in, out, n); }

}  // namespace quern::kernels
#endif
