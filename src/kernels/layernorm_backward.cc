#include <cstddef>

#include "kernels/layernorm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layernorm_backward.cc"
#include "hwy/foreach_target.h"

#include "kernels/convert-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kStep = kVirtualLanes;

// The lanes of the sums of g and g n.
struct Sums {
  V16 gradient, product;
};

// What the second stage needs for its row.
struct Coefficients {
  float reciprocal, offset, slope;
};
struct Coefficients16 {
  V16 reciprocal, offset, slope;
};

template <DType kType>
const Stored<kType>* Normal(const LayernormBackward& args, size_t at) {
  return static_cast<const Stored<kType>*>(args.saved.normal) + at;
}

template <DType kType, bool kEnd>
HWY_INLINE void AddTo(Sums& sums, const LayernormBackward& args, size_t at, size_t i, size_t n) {
  const V16 zero = Set16(0.0f);
  const V16 gradient = Mul16(LoadStep<kEnd>(args.dout + at, n, zero), LoadStep<kEnd>(args.weight + i, n, zero));
  sums.gradient = Add16(sums.gradient, gradient);
  sums.product = MulAdd16(gradient, LoadStepAs<kType, kEnd>(Normal<kType>(args, at), n), sums.product);
}

template <DType kType, bool kEnd>
HWY_INLINE void Write(const LayernormBackward& args, size_t at, size_t i, size_t n, const Coefficients16& row) {
  const V16 zero = Set16(0.0f);
  const V16 dout = LoadStep<kEnd>(args.dout + at, n, zero);
  const V16 normal = LoadStepAs<kType, kEnd>(Normal<kType>(args, at), n);
  const V16 gradient = Mul16(dout, LoadStep<kEnd>(args.weight + i, n, zero));
  const V16 change = MulAdd16(row.reciprocal, gradient, MulAdd16(row.slope, normal, row.offset));
  const V16 dx = Add16(LoadStep<kEnd>(args.dx + at, n, zero), change);
  StoreStep<kEnd>(dx, args.dx + at, n);
  if (args.dweight != nullptr) {
    StoreStep<kEnd>(MulAdd16(dout, normal, LoadStep<kEnd>(args.dweight + i, n, zero)), args.dweight + i, n);
  }
  if (args.dbias != nullptr) {
    StoreStep<kEnd>(Add16(LoadStep<kEnd>(args.dbias + i, n, zero), dout), args.dbias + i, n);
  }
}

// One iteration of a pipeline as in layernorm.cc: stage 1 sums over row r, stage 2 writes row r - 1 with the
// coefficients from its sums.
template <DType kType, bool kStage1, bool kStage2>
HWY_INLINE Coefficients Turn(const LayernormBackward& args, size_t r, size_t C, Coefficients before) {
  const V16 zero = Set16(0.0f);
  Sums sums{zero, zero};
  const Coefficients16 row{Set16(before.reciprocal), Set16(before.offset), Set16(before.slope)};
  const auto step = [&]<bool kEnd>(size_t i) HWY_ATTR {
    if constexpr (kStage1) AddTo<kType, kEnd>(sums, args, r * C + i, i, C - i);
    if constexpr (kStage2) Write<kType, kEnd>(args, (r - 1) * C + i, i, C - i, row);
  };
  size_t i = 0;
  for (; i + kStep <= C; i += kStep) step.template operator()<false>(i);
  if (i < C) step.template operator()<true>(i);
  if constexpr (!kStage1) return {};
  const float reciprocal = args.saved.reciprocal[r], features = static_cast<float>(C);
  return {reciprocal, -(reciprocal * (Sum16(sums.gradient) / features)),
          -(reciprocal * (Sum16(sums.product) / features))};
}

template <DType kType>
HWY_INLINE void Backward(const LayernormBackward& args, size_t rows, size_t C) {
  if (rows == 0) return;
  Coefficients coefficients = Turn<kType, true, false>(args, 0, C, {});
  for (size_t r = 1; r < rows; ++r) coefficients = Turn<kType, true, true>(args, r, C, coefficients);
  Turn<kType, false, true>(args, rows, C, coefficients);
}

}  // namespace

void LayernormBackwardRows(const LayernormBackward& args, size_t rows, size_t C) {
  switch (args.saved.type) {
    case DType::kF32:
      return Backward<DType::kF32>(args, rows, C);
    case DType::kBF16:
      return Backward<DType::kBF16>(args, rows, C);
    case DType::kF16:
      return Backward<DType::kF16>(args, rows, C);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(LayernormBackwardRows);

void layernorm_backward(const LayernormBackward& args, size_t rows, size_t C) noexcept {
  HWY_DYNAMIC_DISPATCH(LayernormBackwardRows)(args, rows, C);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
