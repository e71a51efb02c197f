#include <cstddef>

#include "kernels/layernorm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layernorm_stats_backward.cc"
#include "hwy/foreach_target.h"

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

// With n = (x - mean) r the normalised input and g = dout * weight its gradient,
//   dx += r (g - mean(g) - n mean(g n)) = r g + slope n + offset,  offset = -r mean(g),  slope = -r mean(g n);
//   dweight += dout n, dbias += dout.
constexpr size_t kStep = kVirtualLanes;

// The lanes of the sums of g and of g (x - mean).
struct Sums {
  V16 gradient, product;
};

struct Coefficients {
  float offset, slope;
};

// What the second stage knows of its row.
struct Row {
  V16 mean, reciprocal, offset, slope;
};

template <bool kEnd>
HWY_INLINE void AddTo(Sums& sums, const LayernormStatsBackward& args, size_t at, size_t i, size_t n, const V16& mean) {
  const V16 zero = Set16(0.0f);
  const V16 gradient = Mul16(LoadStep<kEnd>(args.dout + at, n, zero), LoadStep<kEnd>(args.weight + i, n, zero));
  const V16 centred = Sub16(LoadStep<kEnd>(args.x + at, n, mean), mean);
  sums.gradient = Add16(sums.gradient, gradient);
  sums.product = MulAdd16(gradient, centred, sums.product);
}

template <bool kEnd>
HWY_INLINE void Write(const LayernormStatsBackward& args, size_t at, size_t i, size_t n, const Row& row) {
  const V16 zero = Set16(0.0f);
  const V16 dout = LoadStep<kEnd>(args.dout + at, n, zero);
  const V16 normal = Mul16(Sub16(LoadStep<kEnd>(args.x + at, n, zero), row.mean), row.reciprocal);
  const V16 gradient = Mul16(dout, LoadStep<kEnd>(args.weight + i, n, zero));
  const V16 change = MulAdd16(row.reciprocal, gradient, MulAdd16(row.slope, normal, row.offset));
  const V16 dx = Add16(LoadStep<kEnd>(args.dx + at, n, zero), change);
  const V16 dweight = MulAdd16(dout, normal, LoadStep<kEnd>(args.dweight + i, n, zero));
  const V16 dbias = Add16(LoadStep<kEnd>(args.dbias + i, n, zero), dout);
  StoreStep<kEnd>(dx, args.dx + at, n);
  StoreStep<kEnd>(dweight, args.dweight + i, n);
  StoreStep<kEnd>(dbias, args.dbias + i, n);
}

// One turn of a pipeline as in layernorm.cc: stage 1 sums over row r, stage 2 writes row r - 1 with the coefficients
// that its sums gave.
template <bool kStage1, bool kStage2>
HWY_INLINE Coefficients Turn(const LayernormStatsBackward& args, size_t r, size_t C, Coefficients before) {
  const V16 zero = Set16(0.0f);
  Sums sums{zero, zero};
  V16 mean = zero;
  Row row{zero, zero, Set16(before.offset), Set16(before.slope)};
  if constexpr (kStage1) mean = Set16(args.stats.mean[r]);
  if constexpr (kStage2) row.mean = Set16(args.stats.mean[r - 1]);
  if constexpr (kStage2) row.reciprocal = Set16(args.stats.reciprocal[r - 1]);
  const auto step = [&]<bool kEnd>(size_t i) HWY_ATTR {
    if constexpr (kStage1) AddTo<kEnd>(sums, args, r * C + i, i, C - i, mean);
    if constexpr (kStage2) Write<kEnd>(args, (r - 1) * C + i, i, C - i, row);
  };
  size_t i = 0;
  for (; i + kStep <= C; i += kStep) step.template operator()<false>(i);
  if (i < C) step.template operator()<true>(i);
  if constexpr (!kStage1) return {};
  const float reciprocal = args.stats.reciprocal[r], features = static_cast<float>(C);
  const float mean_product = reciprocal * (Sum16(sums.product) / features);  // mean(g n)
  return {-(reciprocal * (Sum16(sums.gradient) / features)), -(reciprocal * mean_product)};
}

}  // namespace

void LayernormStatsBackwardRows(const LayernormStatsBackward& args, size_t rows, size_t C) {
  if (rows == 0) return;
  Coefficients coefficients = Turn<true, false>(args, 0, C, {});
  for (size_t r = 1; r < rows; ++r) coefficients = Turn<true, true>(args, r, C, coefficients);
  Turn<false, true>(args, rows, C, coefficients);
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(LayernormStatsBackwardRows);

void layernorm_backward(const LayernormStatsBackward& args, size_t rows, size_t C) noexcept {
  HWY_DYNAMIC_DISPATCH(LayernormStatsBackwardRows)(args, rows, C);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
