#include "benchmarks/norm_traffic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/norm_traffic.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quern::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> d;
using V = hn::Vec<hn::ScalableTag<float>>;

// Sixteen floats, or sixteen 16-bit values in the first half of each vector.
template <size_t kBytes>
V Load(const char* p) {
  if constexpr (kBytes == 4) return hn::Load(d, reinterpret_cast<const float*>(p));
  const hn::Half<hn::ScalableTag<float>> half;
  return hn::ZeroExtendVector(d, hn::Load(half, reinterpret_cast<const float*>(p)));
}
template <size_t kBytes>
void Store(V v, char* p) {
  if constexpr (kBytes == 4) return hn::Store(v, d, reinterpret_cast<float*>(p));
  const hn::Half<hn::ScalableTag<float>> half;
  hn::Store(hn::LowerHalf(half, v), half, reinterpret_cast<float*>(p));
}

// The traffic of forward: reads x, writes out and n saved elements of kBytes bytes (0: none). n is a multiple of 64.
template <size_t kBytes>
void CopyForward(const float* HWY_RESTRICT x, float* HWY_RESTRICT out, char* HWY_RESTRICT saved, size_t n) {
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += 2 * N) {
    const V a = hn::Load(d, x + i), b = hn::Load(d, x + i + N);
    hn::Store(a, d, out + i);
    hn::Store(b, d, out + i + N);
    if constexpr (kBytes != 0) Store<kBytes>(a, saved + i * kBytes);
    if constexpr (kBytes != 0) Store<kBytes>(b, saved + (i + N) * kBytes);
  }
}

// The traffic of backward: reads the saved values, dout and dx, writes dx. The reads are combined by a bitwise or.
template <size_t kBytes>
void CopyBackward(const char* HWY_RESTRICT saved, const float* HWY_RESTRICT dout, float* HWY_RESTRICT dx, size_t n) {
  const size_t N = hn::Lanes(d);
  const auto either = [&](size_t i) HWY_ATTR {
    return hn::Or(hn::Or(Load<kBytes>(saved + i * kBytes), hn::Load(d, dout + i)), hn::Load(d, dx + i));
  };
  for (size_t i = 0; i < n; i += 2 * N) {
    const V a = either(i), b = either(i + N);
    hn::Store(a, d, dx + i);
    hn::Store(b, d, dx + i + N);
  }
}

void TrafficNormForward(const float* x, float* out, char* saved, size_t bytes, size_t n) {
  if (bytes == 0) return CopyForward<0>(x, out, saved, n);
  if (bytes == 2) return CopyForward<2>(x, out, saved, n);
  return CopyForward<4>(x, out, saved, n);
}

void TrafficNormBackward(const char* saved, size_t bytes, const float* dout, float* dx, size_t n) {
  if (bytes == 2) return CopyBackward<2>(saved, dout, dx, n);
  return CopyBackward<4>(saved, dout, dx, n);
}

}  // namespace quern::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::bench {
namespace {

HWY_EXPORT(TrafficNormForward);
HWY_EXPORT(TrafficNormBackward);

}  // namespace

void traffic_norm_forward(const float* x, float* out, char* saved, size_t bytes, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(TrafficNormForward)(x, out, saved, bytes, n);
}

void traffic_norm_backward(const char* saved, size_t bytes, const float* dout, float* dx, size_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(TrafficNormBackward)(saved, bytes, dout, dx, n);
}

}  // namespace quern::bench
#endif  // HWY_ONCE
