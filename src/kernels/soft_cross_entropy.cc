#include "kernels/soft_cross_entropy.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/soft_cross_entropy.cc"
#include "hwy/foreach_target.h"
//
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// A value where the target is not below 0, otherwise 0 or -infinity. A NaN as target counts as one that exists, so that
// it reaches the loss.
HWY_INLINE V16 OrZero(const V16& x, const V16& t) {
  return Map([](V value, V target) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(target, hn::Zero(d)), value); }, x, t);
}
HWY_INLINE V16 OrNothing(const V16& x, const V16& t) {
  return Map(
      [](V value, V target) HWY_ATTR {
        const V nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
        return hn::IfThenElse(hn::Lt(target, hn::Zero(d)), nothing, value);
      },
      x, t);
}

// f(logits, targets, first element, count) for each 16 elements of a row; lanes past V hold elements that do not exist.
template <class F>
HWY_INLINE void ForEach16(const float* z, const float* t, size_t V, F f) {
  size_t j = 0;
  for (; j + kVirtualLanes <= V; j += kVirtualLanes) f(Load16(z + j), Load16(t + j), j, kVirtualLanes);
  if (j < V) f(LoadN16(z + j, V - j), LoadN16(t + j, V - j, -1.0f), j, V - j);
}

HWY_INLINE void StoreUpTo16(const V16& x, float* p, size_t n) {
  if (n == kVirtualLanes) {
    Store16(x, p);
  } else {
    StoreN16(x, p, n);
  }
}

float RowMax(const float* z, const float* t, size_t V) {
  V16 max = Set16(-std::numeric_limits<float>::infinity());
  ForEach16(z, t, V,
            [&](const V16& x, const V16& target, size_t, size_t) HWY_ATTR { max = Max16(max, OrNothing(x, target)); });
  return MaxLane16(max);
}

struct RowSums {
  float exponentials, targets, products;
};

// The exponentials are also written over the logits if `save` is true.
RowSums SumRow(float* z, const float* t, size_t V, float max, bool save) {
  const V16 shift = Set16(max);
  V16 exponentials = Set16(0.0f), targets = Set16(0.0f), products = Set16(0.0f);
  ForEach16(z, t, V, [&](const V16& x, const V16& target, size_t j, size_t n) HWY_ATTR {
    const V16 below = Sub16(x, shift), share = OrZero(target, target);
    const V16 e = Exp16(OrNothing(below, target));
    exponentials = Add16(exponentials, e);
    targets = Add16(targets, share);
    products = MulAdd16(share, OrZero(below, target), products);
    if (save) StoreUpTo16(e, z + j, n);
  });
  return {Sum16(exponentials), Sum16(targets), Sum16(products)};
}

// From the exponentials to the gradient.
void RowGradient(float* e, const float* t, size_t V, float factor, float scale) {
  const V16 factors = Set16(factor), scales = Set16(-scale);
  ForEach16(e, t, V, [&](const V16& x, const V16& target, size_t j, size_t n) HWY_ATTR {
    StoreUpTo16(MulAdd16(x, factors, Mul16(scales, OrZero(target, target))), e + j, n);
  });
}

// The log is computed in double and rounded once: float versions of log differ between C libraries.
float Row(float* z, const float* t, const SoftCrossEntropy& args) {
  const RowSums sums = SumRow(z, t, args.V, RowMax(z, t, args.V), args.gradient);
  if (args.gradient) RowGradient(z, t, args.V, args.scale * sums.targets / sums.exponentials, args.scale);
  const double log_sum = std::log(static_cast<double>(sums.exponentials));
  return static_cast<float>(static_cast<double>(sums.targets) * log_sum - static_cast<double>(sums.products));
}

}  // namespace

void SoftCrossEntropyRows(const SoftCrossEntropy& args) {
  for (size_t r = 0; r < args.rows; ++r) {
    args.losses[r * args.loss_stride] =
        Row(args.logits + r * args.logit_stride, args.targets + r * args.target_stride, args);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {
namespace {

HWY_EXPORT(SoftCrossEntropyRows);

}  // namespace

void soft_cross_entropy(const SoftCrossEntropy& args) noexcept { HWY_DYNAMIC_DISPATCH(SoftCrossEntropyRows)(args); }

}  // namespace quern::kernels
#endif
