#include <cstddef>

#include "kernels/rmsnorm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rmsnorm_backward.cc"
#include "hwy/foreach_target.h"

#include "kernels/convert-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kStep = kVirtualLanes;

// What the second stage needs for its row.
struct Coefficients {
  float reciprocal, slope;
};
struct Coefficients16 {
  V16 reciprocal, slope;
};

template <DType kType, bool kEnd>
HWY_INLINE V16 Normal(const RmsnormBackward& args, size_t at, size_t n) {
  return LoadStepAs<kType, kEnd>(static_cast<const Stored<kType>*>(args.saved.normal) + at, n);
}

// g, from dout. Branches on the weight and on `add`, instead of template parameters, compile in 0.7 of the time; the
// benchmark shows no difference, calls with a few rows take up to 20 % longer.
template <bool kEnd>
HWY_INLINE V16 Gradient(const RmsnormBackward& args, const V16& dout, size_t i, size_t n) {
  if (args.weight == nullptr) return dout;
  return Mul16(dout, LoadStep<kEnd>(args.weight + i, n, Set16(0.0f)));
}

template <DType kType, bool kEnd>
HWY_INLINE void AddTo(V16& products, const RmsnormBackward& args, size_t at, size_t i, size_t n) {
  const V16 dout = LoadStep<kEnd>(args.dout + at, n, Set16(0.0f));
  products = MulAdd16(Gradient<kEnd>(args, dout, i, n), Normal<kType, kEnd>(args, at, n), products);
}

template <DType kType, bool kEnd>
HWY_INLINE void Write(const RmsnormBackward& args, size_t at, size_t i, size_t n, const Coefficients16& row) {
  const V16 zero = Set16(0.0f);
  const V16 dout = LoadStep<kEnd>(args.dout + at, n, zero), normal = Normal<kType, kEnd>(args, at, n);
  const V16 inner = MulAdd16(row.slope, normal, Gradient<kEnd>(args, dout, i, n));
  if (args.add) {
    StoreStep<kEnd>(MulAdd16(row.reciprocal, inner, LoadStep<kEnd>(args.dx + at, n, zero)), args.dx + at, n);
  } else {
    StoreStep<kEnd>(Mul16(row.reciprocal, inner), args.dx + at, n);
  }
  if (args.dweight != nullptr) {
    const V16 dweight = MulAdd16(dout, normal, LoadStep<kEnd>(args.dweight + i, n, zero));
    StoreStep<kEnd>(dweight, args.dweight + i, n);
  }
}

// One iteration of a pipeline as in layernorm.cc: stage 1 sums over row r, stage 2 writes row r - 1 with the
// coefficients from its sum.
template <DType kType, bool kStage1, bool kStage2>
HWY_INLINE Coefficients Turn(const RmsnormBackward& args, size_t r, size_t C, Coefficients before) {
  V16 products = Set16(0.0f);
  const Coefficients16 row{Set16(before.reciprocal), Set16(before.slope)};
  const auto step = [&]<bool kEnd>(size_t i) HWY_ATTR {
    if constexpr (kStage1) AddTo<kType, kEnd>(products, args, r * C + i, i, C - i);
    if constexpr (kStage2) Write<kType, kEnd>(args, (r - 1) * C + i, i, C - i, row);
  };
  size_t i = 0;
  for (; i + kStep <= C; i += kStep) step.template operator()<false>(i);
  if (i < C) step.template operator()<true>(i);
  if constexpr (!kStage1) return {};
  return {args.saved.reciprocal[r], -(Sum16(products) / static_cast<float>(C))};
}

// As in rmsnorm.cc, the copy of the arguments keeps them in registers.
template <DType kType>
HWY_NOINLINE void Pipeline(const RmsnormBackward& arguments, size_t rows, size_t C) {
  const RmsnormBackward args = arguments;
  if (rows == 0) return;
  Coefficients coefficients = Turn<kType, true, false>(args, 0, C, {});
  for (size_t r = 1; r < rows; ++r) coefficients = Turn<kType, true, true>(args, r, C, coefficients);
  Turn<kType, false, true>(args, rows, C, coefficients);
}

}  // namespace

void RmsnormBackwardRows(const RmsnormBackward& args, size_t rows, size_t C) {
  switch (args.saved.type) {
    case DType::kF32:
      return Pipeline<DType::kF32>(args, rows, C);
    case DType::kBF16:
      return Pipeline<DType::kBF16>(args, rows, C);
    case DType::kF16:
      return Pipeline<DType::kF16>(args, rows, C);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(RmsnormBackwardRows);

void rmsnorm_backward(const RmsnormBackward& args, size_t rows, size_t C) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsnormBackwardRows)(args, rows, C);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
