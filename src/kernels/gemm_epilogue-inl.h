// What happens to a finished tile of GEMM's C while it is in L1. Included per target, after vec-inl.h.
#if defined(QUERN_KERNELS_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUERN_KERNELS_GEMM_EPILOGUE_INL_H_
#undef QUERN_KERNELS_GEMM_EPILOGUE_INL_H_
#else
#define QUERN_KERNELS_GEMM_EPILOGUE_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "kernels/convert-inl.h"
#include "kernels/gelu-inl.h"
#include "kernels/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

constexpr bool HasBias(Epilogue e) {
  return e == Epilogue::kBias || e == Epilogue::kBiasGelu || e == Epilogue::kBiasResidual;
}
constexpr bool HasResidual(Epilogue e) { return e == Epilogue::kResidual || e == Epilogue::kBiasResidual; }

// Nothing is kept.
struct KeepNothing {
  using Element = float;
  static constexpr bool kKeeps = false;
  static HWY_INLINE V Keep(V y, Element*) { return y; }
};

// Stores y as `kType` and returns what was stored, so that C follows from what backward reads.
template <DType kType>
struct KeepAs {
  using Element = Stored<kType>;
  static constexpr bool kKeeps = true;
  static HWY_INLINE V Keep(V y, Element* HWY_RESTRICT p) {
    if constexpr (kType == DType::kF32) {
      hn::StoreU(y, d, p);
      return y;
    } else if constexpr (kType == DType::kBF16) {
      const VHalf stored = DemoteBF16(y);
      hn::StoreU(stored, dhalf, p);
      return PromoteBF16(stored);
    } else {
      const VHalf stored = DemoteF16(y);
      hn::StoreU(stored, dhalf, p);
      return PromoteF16(stored);
    }
  }
};

// Where the elements of a row of C lie, and what joins them; pointers that the epilogue does not use are null.
template <class Keeper>
struct EpilogueRow {
  float* c;
  const float* bias;
  const float* residual;
  typename Keeper::Element* kept;
};

// Finishes the vector at element `at` of a row.
template <Epilogue kEpilogue, class Keeper>
HWY_INLINE void FinishVector(const EpilogueRow<Keeper>& row, size_t at) {
  V x = hn::LoadU(d, row.c + at);
  if constexpr (HasBias(kEpilogue)) x = hn::Add(x, hn::LoadU(d, row.bias + at));
  if constexpr (HasResidual(kEpilogue)) x = hn::Add(x, hn::LoadU(d, row.residual + at));
  if constexpr (Keeper::kKeeps) x = Keeper::Keep(x, row.kept + at);
  if constexpr (kEpilogue == Epilogue::kBiasGelu) x = Gelu(x);
  hn::StoreU(x, d, row.c + at);
}

// Finishes n < kN elements at `at` through buffers: nothing past them is touched.
template <Epilogue kEpilogue, class Keeper>
HWY_INLINE void FinishTail(const EpilogueRow<Keeper>& row, size_t at, size_t n) {
  HWY_ALIGN float c[kN] = {}, bias[kN] = {}, residual[kN] = {};
  HWY_ALIGN typename Keeper::Element kept[kN];
  std::memcpy(c, row.c + at, n * sizeof(float));
  if constexpr (HasBias(kEpilogue)) std::memcpy(bias, row.bias + at, n * sizeof(float));
  if constexpr (HasResidual(kEpilogue)) std::memcpy(residual, row.residual + at, n * sizeof(float));
  FinishVector<kEpilogue, Keeper>({c, bias, residual, kept}, 0);
  std::memcpy(row.c + at, c, n * sizeof(float));
  if constexpr (Keeper::kKeeps) std::memcpy(row.kept + at, kept, n * sizeof(kept[0]));
}

// Finishes rows i ... i + rows and columns j ... j + cols of C.
template <Epilogue kEpilogue, class Keeper>
void Finish(const Gemm& g, size_t i, size_t rows, size_t j, size_t cols) {
  for (size_t r = i; r < i + rows; ++r) {
    const size_t start = r * g.c_stride + j;
    EpilogueRow<Keeper> row{g.c + start, nullptr, nullptr, nullptr};
    if constexpr (HasBias(kEpilogue)) row.bias = g.bias + j;
    if constexpr (HasResidual(kEpilogue)) row.residual = g.residual + start;
    if constexpr (Keeper::kKeeps) row.kept = static_cast<typename Keeper::Element*>(g.kept.data) + start;
    size_t at = 0;
    for (; at + kN <= cols; at += kN) FinishVector<kEpilogue, Keeper>(row, at);
    if (at < cols) FinishTail<kEpilogue, Keeper>(row, at, cols - at);
  }
}

using FinishFunction = void (*)(const Gemm&, size_t i, size_t rows, size_t j, size_t cols);

template <Epilogue kEpilogue>
HWY_INLINE FinishFunction FinishKeeping(const Kept& kept) {
  if (kept.data == nullptr) return kEpilogue == Epilogue::kNone ? nullptr : &Finish<kEpilogue, KeepNothing>;
  switch (kept.type) {
    case DType::kF32:
      return &Finish<kEpilogue, KeepAs<DType::kF32>>;
    case DType::kBF16:
      return &Finish<kEpilogue, KeepAs<DType::kBF16>>;
    case DType::kF16:
      return &Finish<kEpilogue, KeepAs<DType::kF16>>;
  }
  return nullptr;
}

// What finishes the tiles of a product; null where nothing is left to do.
HWY_INLINE FinishFunction FinishFor(const Gemm& g) {
  switch (g.epilogue) {
    case Epilogue::kNone:
      return FinishKeeping<Epilogue::kNone>(g.kept);
    case Epilogue::kBias:
      return FinishKeeping<Epilogue::kBias>(g.kept);
    case Epilogue::kBiasGelu:
      return FinishKeeping<Epilogue::kBiasGelu>(g.kept);
    case Epilogue::kResidual:
      return &Finish<Epilogue::kResidual, KeepNothing>;
    case Epilogue::kBiasResidual:
      return &Finish<Epilogue::kBiasResidual, KeepNothing>;
  }
  return nullptr;
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GEMM_EPILOGUE_INL_H_
