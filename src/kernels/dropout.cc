#include "kernels/dropout.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cc"
#include "hwy/foreach_target.h"

#include "kernels/philox-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kGroup = 64;  // elements: 16 blocks of four words

HWY_INLINE void DropGroup(const DropoutMask& mask, uint64_t group, const float* x, float* out) {
  for (size_t part = 0; part < kParts; ++part) {
    const float* p = x + part * kN;
    const DropoutVectors y =
        mask.Apply(group, part, {hn::LoadU(d, p), hn::LoadU(d, p + 16), hn::LoadU(d, p + 32), hn::LoadU(d, p + 48)});
    float* q = out + part * kN;
    hn::StoreU(y.v0, d, q);
    hn::StoreU(y.v1, d, q + 16);
    hn::StoreU(y.v2, d, q + 32);
    hn::StoreU(y.v3, d, q + 48);
  }
}

}  // namespace

void DropoutAll(const Dropout& options, const float* x, float* out, size_t n, uint64_t first) {
  const DropoutMask mask(options);
  uint64_t group = first / kGroup;
  size_t i = 0;
  for (; i + kGroup <= n; i += kGroup) DropGroup(mask, group++, x + i, out + i);
  if (i == n) return;
  HWY_ALIGN float buffer[kGroup] = {};
  std::memcpy(buffer, x + i, (n - i) * sizeof(float));
  DropGroup(mask, group, buffer, buffer);
  std::memcpy(out + i, buffer, (n - i) * sizeof(float));
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(DropoutAll);

void dropout(const Dropout& options, const float* x, float* out, size_t n, uint64_t first) noexcept {
  if (options.rate > 0.0f) {
    HWY_DYNAMIC_DISPATCH(DropoutAll)(options, x, out, n, first);
  } else if (out != x && n > 0) {
    std::memcpy(out, x, n * sizeof(float));
  }
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
