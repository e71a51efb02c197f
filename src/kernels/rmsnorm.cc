#include "kernels/rmsnorm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rmsnorm.cc"
#include "hwy/foreach_target.h"

#include "kernels/convert-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

struct Args {
  const float* x;
  const float* delta;  // only with a residual
  float* sum;          // only with a residual
  const float* input;  // what is normalized: x or sum
  float* out;
  RmsnormSaved saved;
  size_t rows, C;
  float epsilon;
  const float* weight;  // null for none
};

// Calls step<false>(i) for each 16 features, and step<true>(i) for the remainder.
template <class Step>
HWY_INLINE void AlongRow(size_t C, Step step) {
  size_t i = 0;
  for (; i + kVirtualLanes <= C; i += kVirtualLanes) step.template operator()<false>(i);
  if (i < C) step.template operator()<true>(i);
}

// Reads 16 inputs for the first time: x, or x + delta, which is also written to sum. Lanes past the end are 0.
template <bool kResidual, bool kEnd>
HWY_INLINE V16 Read(const Args& args, size_t row, size_t i) {
  const V16 zero = Set16(0.0f);
  const size_t n = args.C - i, at = row * args.C + i;
  V16 x = LoadStep<kEnd>(args.x + at, n, zero);
  if constexpr (kResidual) {
    x = Add16(x, LoadStep<kEnd>(args.delta + at, n, zero));
    StoreStep<kEnd>(x, args.sum + at, n);
  }
  return x;
}

// out = normal * weight: the last step of forward, and all of its recomputation. Branches instead
// of template parameters compile in two thirds of the time; the benchmark shows no difference.
template <bool kEnd>
HWY_INLINE void Scale(const V16& normal, const float* weight, size_t i, float* out, size_t n) {
  if (weight != nullptr) {
    StoreStep<kEnd>(Mul16(normal, LoadStep<kEnd>(weight + i, n, Set16(0.0f))), out, n);
  } else {
    StoreStep<kEnd>(normal, out, n);
  }
}

template <DType kType, bool kKeep, bool kEnd>
HWY_INLINE void Write(const Args& args, size_t row, size_t i, const V16& reciprocal) {
  const size_t n = args.C - i, at = row * args.C + i;
  const V16 normal = Mul16(LoadStep<kEnd>(args.input + at, n, Set16(0.0f)), reciprocal);
  if constexpr (kKeep) StoreStepAs<kType, kEnd>(normal, static_cast<Stored<kType>*>(args.saved.normal) + at, n);
  Scale<kEnd>(Rounded16<kType>(normal), args.weight, i, args.out + at, n);
}

// One iteration of a pipeline over rows, as in layernorm.cc: stage 1 sums the squares of row r, stage 2 writes row
// r - 1, whose reciprocal is given. Returns the reciprocal of row r.
template <bool kResidual, DType kType, bool kKeep, bool kStage1, bool kStage2>
HWY_INLINE float Turn(const Args& args, size_t r, float before) {
  const V16 reciprocal16 = Set16(before);
  V16 squares = Set16(0.0f);
  AlongRow(args.C, [&]<bool kEnd>(size_t i) HWY_ATTR {
    if constexpr (kStage1) {
      const V16 x = Read<kResidual, kEnd>(args, r, i);
      squares = MulAdd16(x, x, squares);
    }
    if constexpr (kStage2) Write<kType, kKeep, kEnd>(args, r - 1, i, reciprocal16);
  });
  if constexpr (!kStage1) return 0.0f;
  const float reciprocal = 1.0f / std::sqrt(Sum16(squares) / static_cast<float>(args.C) + args.epsilon);
  if (args.saved.reciprocal != nullptr) args.saved.reciprocal[r] = reciprocal;
  return reciprocal;
}

// The copy of the arguments keeps them in registers: the compiler assumes that a vector store may change what a
// reference refers to. Forward reaches 0.9 of the rate of a copy with it, 0.65 without.
template <bool kResidual, DType kType, bool kKeep>
HWY_NOINLINE void Pipeline(const Args& arguments) {
  const Args args = arguments;
  if (args.rows == 0) return;
  float reciprocal = Turn<kResidual, kType, kKeep, true, false>(args, 0, 0.0f);
  for (size_t r = 1; r < args.rows; ++r) reciprocal = Turn<kResidual, kType, kKeep, true, true>(args, r, reciprocal);
  Turn<kResidual, kType, kKeep, false, true>(args, args.rows, reciprocal);
}

template <bool kResidual, DType kType>
HWY_INLINE void ForwardAs(const Args& args) {
  if (args.saved.normal != nullptr) {
    Pipeline<kResidual, kType, true>(args);
  } else {
    Pipeline<kResidual, kType, false>(args);
  }
}

template <bool kResidual>
HWY_INLINE void Forward(const Args& args) {
  switch (args.saved.type) {
    case DType::kF32:
      return ForwardAs<kResidual, DType::kF32>(args);
    case DType::kBF16:
      return ForwardAs<kResidual, DType::kBF16>(args);
    case DType::kF16:
      return ForwardAs<kResidual, DType::kF16>(args);
  }
}

template <DType kType>
HWY_INLINE void Apply(const void* normal, const float* weight, float* out, size_t rows, size_t C) {
  for (size_t row = 0; row < rows; ++row) {
    const Stored<kType>* from = static_cast<const Stored<kType>*>(normal) + row * C;
    float* to = out + row * C;
    AlongRow(C, [&]<bool kEnd>(size_t i)
                    HWY_ATTR { Scale<kEnd>(LoadStepAs<kType, kEnd>(from + i, C - i), weight, i, to + i, C - i); });
  }
}

}  // namespace

void RmsnormForward(const float* x, float* out, const RmsnormSaved& saved, size_t rows, size_t C,
                    const RmsnormOptions& options) {
  Forward<false>({x, nullptr, nullptr, x, out, saved, rows, C, options.epsilon, options.weight});
}

void ResidualRmsnormForward(const float* x, const float* delta, float* sum, float* out, const RmsnormSaved& saved,
                            size_t rows, size_t C, const RmsnormOptions& options) {
  Forward<true>({x, delta, sum, sum, out, saved, rows, C, options.epsilon, options.weight});
}

void RmsnormApply(const void* normal, DType type, const float* weight, float* out, size_t rows, size_t C) {
  switch (type) {
    case DType::kF32:
      return Apply<DType::kF32>(normal, weight, out, rows, C);
    case DType::kBF16:
      return Apply<DType::kBF16>(normal, weight, out, rows, C);
    case DType::kF16:
      return Apply<DType::kF16>(normal, weight, out, rows, C);
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(RmsnormForward);
HWY_EXPORT(ResidualRmsnormForward);
HWY_EXPORT(RmsnormApply);

void rmsnorm_forward(const float* x, float* out, RmsnormSaved saved, size_t rows, size_t C,
                     const RmsnormOptions& options) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsnormForward)(x, out, saved, rows, C, options);
}

void residual_rmsnorm_forward(const float* x, const float* delta, float* sum, float* out, RmsnormSaved saved,
                              size_t rows, size_t C, const RmsnormOptions& options) noexcept {
  HWY_DYNAMIC_DISPATCH(ResidualRmsnormForward)(x, delta, sum, out, saved, rows, C, options);
}

void rmsnorm_apply(const void* normal, DType type, const float* weight, float* out, size_t rows, size_t C) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsnormApply)(normal, type, weight, out, rows, C);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
