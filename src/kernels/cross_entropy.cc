#include "kernels/cross_entropy.h"

#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// f(x, first element, count) for each 16 elements of the row; lanes past V hold -infinity, which affects neither a
// maximum nor a sum of exponentials.
template <class F>
HWY_INLINE void ForEach16(const float* row, size_t V, F f) {
  size_t j = 0;
  for (; j + kVirtualLanes <= V; j += kVirtualLanes) f(Load16(row + j), j, kVirtualLanes);
  if (j < V) f(LoadN16(row + j, V - j, kNothing), j, V - j);
}

HWY_INLINE void StoreUpTo16(const V16& x, float* p, size_t n) {
  if (n == kVirtualLanes) {
    Store16(x, p);
  } else {
    StoreN16(x, p, n);
  }
}

float RowMax(const float* row, size_t V) {
  V16 max = Set16(kNothing);
  ForEach16(row, V, [&](const V16& x, size_t, size_t) HWY_ATTR { max = Max16(max, x); });
  return MaxLane16(max);
}

// The cap of logits z: y = cap * tanh(z / cap).
struct Cap {
  explicit Cap(float cap) : value(hn::Set(d, cap)), factor(hn::Set(d, 2.0f / cap)) {}
  V value;
  V factor;  // 2 / cap
};

// tanh(z / cap) = m / (m + 2) with m = e^x - 1, x = 2 z / cap. The steps are those of ExpNormal, but 1 is subtracted
// from the power of two: e^x - 1 = 2^n (e^r - 1) + (2^n - 1), where e^r - 1 = r + r^2 P(r). Nothing cancels, so the
// relative error is below 2e-7 for small z too. From |x| = 20 on, m / (m + 2) is 1 in fp32.
HWY_INLINE V CapTanh(const Cap& cap, V z) {
  const V one = hn::Set(d, 1.0f), magic = hn::Set(d, 12582912.0f);
  const V x = AtMost(20.0f, AtLeast(-20.0f, hn::Mul(z, cap.factor)));
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::MulAdd(n, hn::Set(d, -0.693359375f), x);
  r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
  V p = hn::Set(d, 0.00139262508f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836323288f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416665542f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665767f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  const V power = hn::BitCast(d, hn::Add(hn::BitCast(di, one), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  const V m = hn::MulAdd(p, power, hn::Sub(power, one));
  return hn::Div(m, hn::Add(m, hn::Set(d, 2.0f)));
}

// dy/dz = 1 - tanh^2.
HWY_INLINE V CapSlope(V tanh) { return hn::NegMulAdd(tanh, tanh, hn::Set(d, 1.0f)); }

// One logit, with the bits of the vector code: y, and its derivative.
struct CappedLogit {
  CappedLogit(const Cap& cap, float z) {
    const V tanh = CapTanh(cap, hn::Set(d, z));
    value = hn::GetLane(hn::Mul(cap.value, tanh));
    slope = hn::GetLane(CapSlope(tanh));
  }
  float value, slope;
};

// x with -infinity in the lanes from n on.
HWY_INLINE V16 First16(const V16& x, size_t n) {
  HWY_ALIGN float buffer[kVirtualLanes];
  Store16(x, buffer);
  return LoadN16(buffer, n, kNothing);
}

// The sum of e^(row[j] - shift); the terms are also written to `out` if it is not null.
float RowExp(const float* row, size_t V, float shift, float* out) {
  const V16 shift16 = Set16(shift);
  V16 sum = Set16(0.0f);
  ForEach16(row, V, [&](const V16& x, size_t j, size_t n) HWY_ATTR {
    const V16 e = Exp16(Sub16(x, shift16));
    sum = Add16(sum, e);
    if (out != nullptr) StoreUpTo16(e, out + j, n);
  });
  return Sum16(sum);
}

// The same of capped logits; the terms written to `out` are also multiplied by dy/dz.
float RowExpCapped(const Cap& cap, const float* row, size_t V, float shift, float* out) {
  const V16 shift16 = Set16(shift), cap16{cap.value, cap.value, cap.value, cap.value};
  V16 sum = Set16(0.0f);
  ForEach16(row, V, [&](const V16& x, size_t j, size_t n) HWY_ATTR {
    const V16 tanh = Map([&](auto z) HWY_ATTR { return CapTanh(cap, z); }, x);
    const V16 y = Mul16(cap16, tanh);
    const V16 e = Exp16(Sub16(n == kVirtualLanes ? y : First16(y, n), shift16));
    sum = Add16(sum, e);
    if (out == nullptr) return;
    StoreUpTo16(Map([](auto term, auto t) HWY_ATTR { return hn::Mul(term, CapSlope(t)); }, e, tanh), out + j, n);
  });
  return Sum16(sum);
}

void RowScale(float* row, size_t V, float factor) {
  const V16 factor16 = Set16(factor);
  ForEach16(row, V, [&](const V16& x, size_t j, size_t n) HWY_ATTR { StoreUpTo16(Mul16(x, factor16), row + j, n); });
}

float Loss(float sum, float max, float chosen) {
  return static_cast<float>(std::log(static_cast<double>(sum)) + static_cast<double>(max) -
                            static_cast<double>(chosen));
}

// Three passes over a row; the second and third find it in the cache. The log is computed in double and rounded once:
// float versions of log differ between C libraries. Each returns the loss.
float Row(float* row, size_t V, size_t target, float scale, bool gradient) {
  const float max = RowMax(row, V), chosen = row[target];
  const float sum = RowExp(row, V, max, gradient ? row : nullptr);
  if (gradient) {
    RowScale(row, V, scale / sum);
    row[target] -= scale;
  }
  return Loss(sum, max, chosen);
}

// The cap does not decrease, so the largest y is that of the largest logit, up to a rounding.
float RowCapped(const Cap& cap, float* row, size_t V, size_t target, float scale, bool gradient) {
  const CappedLogit max(cap, RowMax(row, V)), chosen(cap, row[target]);
  const float sum = RowExpCapped(cap, row, V, max.value, gradient ? row : nullptr);
  if (gradient) {
    RowScale(row, V, scale / sum);
    row[target] -= scale * chosen.slope;
  }
  return Loss(sum, max.value, chosen.value);
}

}  // namespace

void CrossEntropyRows(float* logits, size_t stride, const int32_t* targets, size_t rows, size_t V, float scale,
                      float* losses, bool gradient, float cap) {
  for (size_t r = 0; r < rows; ++r) {
    float* row = logits + r * stride;
    if (targets[r] == kIgnoreTarget) {
      losses[r] = 0.0f;
      if (gradient) std::memset(row, 0, V * sizeof(float));
      continue;
    }
    const size_t target = static_cast<size_t>(targets[r]);
    losses[r] =
        cap == 0.0f ? Row(row, V, target, scale, gradient) : RowCapped(Cap(cap), row, V, target, scale, gradient);
  }
}

void SoftCap(float* logits, size_t n, float cap) {
  const Cap of(cap);
  const auto y = [&](V z) HWY_ATTR { return hn::Mul(of.value, CapTanh(of, z)); };
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) Store16(Map(y, Load16(logits + i)), logits + i);
  if (i < n) StoreN16(Map(y, LoadN16(logits + i, n - i)), logits + i, n - i);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(SoftCap);

}  // namespace

void cross_entropy(float* logits, size_t stride, const int32_t* targets, size_t rows, size_t V, float scale,
                   float* losses, bool gradient, float cap) noexcept {
  HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(logits, stride, targets, rows, V, scale, losses, gradient, cap);
}

void soft_cap(float* logits, size_t n, float cap) noexcept {
  if (cap != 0.0f) HWY_DYNAMIC_DISPATCH(SoftCap)(logits, n, cap);
}

}  // namespace quern::kernels
#endif
