#include "kernels/limits.h"

#include "core/measuring.h"
#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/limits.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// Latency times throughput is at most 5 x 2 on x86 (Haswell, Zen 2) and 4 x 4 on large ARM cores, so 12 chains saturate
// the former within 16 registers; targets with 32 registers get 24.
constexpr bool kManyRegisters = kN == 16 || !HWY_ARCH_X86;
constexpr size_t kUnroll = 4;  // hides the loop counter

struct Chains {
  V a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11;
};

// Twelve different starting values: the compiler would merge chains that start alike.
HWY_INLINE Chains Start(float x) {
  const auto at = [x](int chain) HWY_ATTR { return hn::Iota(d, x + static_cast<float>(chain)); };
  return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10), at(11)};
}

HWY_INLINE void Step(Chains& c, V multiply, V add) {
  c.a0 = hn::MulAdd(c.a0, multiply, add);
  c.a1 = hn::MulAdd(c.a1, multiply, add);
  c.a2 = hn::MulAdd(c.a2, multiply, add);
  c.a3 = hn::MulAdd(c.a3, multiply, add);
  c.a4 = hn::MulAdd(c.a4, multiply, add);
  c.a5 = hn::MulAdd(c.a5, multiply, add);
  c.a6 = hn::MulAdd(c.a6, multiply, add);
  c.a7 = hn::MulAdd(c.a7, multiply, add);
  c.a8 = hn::MulAdd(c.a8, multiply, add);
  c.a9 = hn::MulAdd(c.a9, multiply, add);
  c.a10 = hn::MulAdd(c.a10, multiply, add);
  c.a11 = hn::MulAdd(c.a11, multiply, add);
}

HWY_INLINE V Total(const Chains& c) {
  const V x = hn::Add(hn::Add(hn::Add(c.a0, c.a1), hn::Add(c.a2, c.a3)), hn::Add(c.a4, c.a5));
  const V y = hn::Add(hn::Add(hn::Add(c.a6, c.a7), hn::Add(c.a8, c.a9)), hn::Add(c.a10, c.a11));
  return hn::Add(x, y);
}

}  // namespace

double MultiplyAdds(size_t rounds) {
  // x <- 0.99 x + 0.01 converges to 1: no infinities and no denormals, which some cores compute slowly.
  const V multiply = hn::Set(d, 0.99f);
  const V add = hn::Set(d, 0.01f);
  Chains low = Start(2.0f);
  Chains high = Start(20.0f);
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t u = 0; u < kUnroll; ++u) {
      Step(low, multiply, add);
      if constexpr (kManyRegisters) Step(high, multiply, add);
    }
  }
  do_not_optimize(hn::GetLane(hn::Add(Total(low), Total(high))));
  return 2.0 * static_cast<double>(rounds * kUnroll * 12 * (kManyRegisters ? 2 : 1) * kN);
}

float ReadFloats(const float* HWY_RESTRICT x, size_t n) {
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < n; i += 4 * kN) {
    s0 = hn::Add(s0, hn::Load(d, x + i));
    s1 = hn::Add(s1, hn::Load(d, x + i + kN));
    s2 = hn::Add(s2, hn::Load(d, x + i + 2 * kN));
    s3 = hn::Add(s3, hn::Load(d, x + i + 3 * kN));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

void StreamCopy(const float* HWY_RESTRICT x, float* HWY_RESTRICT out, size_t n) {
  for (size_t i = 0; i < n; i += 4 * kN) {
    const V v0 = hn::Load(d, x + i);
    const V v1 = hn::Load(d, x + i + kN);
    const V v2 = hn::Load(d, x + i + 2 * kN);
    const V v3 = hn::Load(d, x + i + 3 * kN);
    hn::Stream(v0, d, out + i);
    hn::Stream(v1, d, out + i + kN);
    hn::Stream(v2, d, out + i + 2 * kN);
    hn::Stream(v3, d, out + i + 3 * kN);
  }
  hwy::FlushStream();
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(ReadFloats);
HWY_EXPORT(StreamCopy);

double multiply_adds(size_t rounds) { return HWY_DYNAMIC_DISPATCH(MultiplyAdds)(rounds); }
float read_floats(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(ReadFloats)(x, n); }
void stream_copy(const float* x, float* out, size_t n) { HWY_DYNAMIC_DISPATCH(StreamCopy)(x, out, n); }

}  // namespace quern::kernels
#endif  // HWY_ONCE
