#include "benchmarks/attention_reference.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/attention_reference.cc"
#include "hwy/foreach_target.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::bench::HWY_NAMESPACE {
using namespace quern::kernels::HWY_NAMESPACE;  // NOLINT: the vector helpers of this target
namespace hn = hwy::HWY_NAMESPACE;

void Softmax(float* matrix, size_t T, float scale) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  const V16 scales = Set16(scale);
  for (size_t i = 0; i < T; ++i) {
    float* s = matrix + i * T;
    const size_t end = i / 16 * 16 + 16;
    for (size_t j = i + 1; j < end; ++j) s[j] = kMasked;
    V16 top0 = Load16(s), top1 = top0;
    size_t j = 0;
    for (; j + 32 <= end; j += 32) {
      top0 = Max16(top0, Load16(s + j));
      top1 = Max16(top1, Load16(s + j + 16));
    }
    if (j < end) top0 = Max16(top0, Load16(s + j));
    const V16 shift = Set16(-scale * MaxLane16(Max16(top0, top1)));
    V16 sum = Set16(0.0f);
    for (j = 0; j < end; j += 16) {
      const V16 e = Exp16(MulAdd16(scales, Load16(s + j), shift));
      Store16(e, s + j);
      sum = Add16(sum, e);
    }
    const V16 factor = Set16(1.0f / Sum16(sum));
    for (j = 0; j < end; j += 16) Store16(Mul16(Load16(s + j), factor), s + j);
    for (; j < T; j += 16) Store16(Set16(0.0f), s + j);
  }
}

void SoftmaxBackward(const float* p, float* dp, size_t T, float scale) {
  for (size_t i = 0; i < T; ++i, p += T, dp += T) {
    const size_t end = i / 16 * 16 + 16;
    V16 sum0 = Set16(0.0f), sum1 = sum0;
    size_t j = 0;
    for (; j + 32 <= end; j += 32) {
      sum0 = MulAdd16(Load16(p + j), Load16(dp + j), sum0);
      sum1 = MulAdd16(Load16(p + j + 16), Load16(dp + j + 16), sum1);
    }
    if (j < end) sum0 = MulAdd16(Load16(p + j), Load16(dp + j), sum0);
    const V16 scales = Set16(scale), centre = Set16(-scale * Sum16(Add16(sum0, sum1)));
    for (j = 0; j < end; j += 16) Store16(Mul16(Load16(p + j), MulAdd16(scales, Load16(dp + j), centre)), dp + j);
    for (; j < T; j += 16) Store16(Set16(0.0f), dp + j);
  }
}

}  // namespace quern::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::bench {

HWY_EXPORT(Softmax);
HWY_EXPORT(SoftmaxBackward);

void full_softmax(float* p, size_t T, float scale) { HWY_DYNAMIC_DISPATCH(Softmax)(p, T, scale); }
void full_softmax_backward(const float* p, float* dp, size_t T, float scale) {
  HWY_DYNAMIC_DISPATCH(SoftmaxBackward)(p, dp, T, scale);
}

}  // namespace quern::bench
#endif
