// Epilogues, applied to a finished tile of GEMM's C while it is in L1. Included per target, after vec-inl.h.
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
#include "kernels/relu2-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {

// Rounds n vectors to bf16, stores them, and leaves the stored values in x. As in ToBF16x4, only NaN takes the slow
// path.
template <size_t n>
HWY_INLINE void StoreRoundedBF16(V (&x)[n], Half* HWY_RESTRICT p) {
  V sum = x[0];
  Unroll<n - 1>([&](auto v) HWY_ATTR { sum = hn::Add(sum, x[v + 1]); });
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(sum)))) {
    Unroll<n>([&](auto v) HWY_ATTR { x[v] = RoundNumberBF16(x[v]); });
  } else {
    Unroll<n>([&](auto v) HWY_ATTR { x[v] = RoundBF16(x[v]); });
  }
  const hn::Repartition<uint16_t, D> dfull;
  const auto halves = [&](V v) HWY_ATTR { return hn::BitCast(dfull, v); };
  Unroll<n / 2>([&](auto v) HWY_ATTR {  // the upper halves of two vectors form one
    hn::StoreU(hn::ConcatOdd(dfull, halves(x[2 * v + 1]), halves(x[2 * v])), dfull, p + 2 * v * kN);
  });
  if constexpr (n % 2 == 1) {
    hn::StoreU(hn::LowerHalf(dhalf, hn::ConcatOdd(dfull, halves(x[n - 1]), halves(x[n - 1]))), dhalf, p + (n - 1) * kN);
  }
  const V upper = hn::BitCast(d, hn::Set(di, -0x10000));
  Unroll<n>([&](auto v) HWY_ATTR { x[v] = hn::And(x[v], upper); });
}

// Rows of a full tile that are finished at a time: 6 vectors (AVX-512) or 4, whose GELUs run interleaved.
constexpr size_t kFinishRows = 2;

constexpr bool HasBias(Epilogue e) { return e != Epilogue::kNone; }

// Nothing is saved.
struct SaveNothing {
  using Element = float;
  static constexpr bool kSaves = false;
  template <size_t n>
  static HWY_INLINE void Save(V (&)[n], Element*) {}
};

// Stores n vectors as `kType` and leaves the stored values in y, so that C is computed from what backward reads.
template <DType kType>
struct SaveAs {
  using Element = Stored<kType>;
  static constexpr bool kSaves = true;
  template <size_t n>
  static HWY_INLINE void Save(V (&y)[n], Element* HWY_RESTRICT p) {
    if constexpr (kType == DType::kBF16) {
      StoreRoundedBF16(y, p);
    } else {
      Unroll<n>([&](auto v) HWY_ATTR {
        if constexpr (kType == DType::kF32) {
          hn::StoreU(y[v], d, p + v * kN);
        } else {
          const VHalf stored = DemoteF16(y[v]);
          hn::StoreU(stored, dhalf, p + v * kN);
          y[v] = PromoteF16(stored);
        }
      });
    }
  }
};

// Pointers to the elements of a row of C and the epilogue's operands; null if the epilogue does not use them.
template <class Saver>
struct EpilogueRow {
  float* c;
  const float* bias;
  typename Saver::Element* saved;
};

// Finishes n vectors at offset `at` of `kRows` rows that are `stride` apart.
template <Epilogue kEpilogue, size_t kRows, size_t n, class Saver>
HWY_INLINE void FinishVectors(const EpilogueRow<Saver>& row, size_t stride, size_t at) {
  V x[kRows * n];
  Unroll<kRows>([&](auto r) HWY_ATTR {
    V y[n];
    Unroll<n>([&](auto v) HWY_ATTR {
      const size_t e = at + v * kN;
      y[v] = hn::LoadU(d, row.c + r * stride + e);
      if constexpr (HasBias(kEpilogue)) y[v] = hn::Add(y[v], hn::LoadU(d, row.bias + e));
    });
    if constexpr (Saver::kSaves) Saver::Save(y, row.saved + r * stride + at);
    Unroll<n>([&](auto v) HWY_ATTR { x[r * n + v] = y[v]; });
  });
  if constexpr (kEpilogue == Epilogue::kBiasGelu) GeluEach(x);
  if constexpr (kEpilogue == Epilogue::kBiasRelu2) {
    Unroll<kRows * n>([&](auto i) HWY_ATTR { x[i] = Relu2(x[i]); });
  }
  Unroll<kRows * n>([&](auto i) HWY_ATTR { hn::StoreU(x[i], d, row.c + i / n * stride + at + i % n * kN); });
}

// Finishes n < kN elements at offset `at` through buffers: touches nothing past them.
template <Epilogue kEpilogue, class Saver>
HWY_INLINE void FinishTail(const EpilogueRow<Saver>& row, size_t at, size_t n) {
  HWY_ALIGN float c[kN] = {}, bias[kN] = {};
  HWY_ALIGN typename Saver::Element saved[kN];
  std::memcpy(c, row.c + at, n * sizeof(float));
  if constexpr (HasBias(kEpilogue)) std::memcpy(bias, row.bias + at, n * sizeof(float));
  FinishVectors<kEpilogue, 1, 1, Saver>({c, bias, saved}, 0, 0);
  std::memcpy(row.c + at, c, n * sizeof(float));
  if constexpr (Saver::kSaves) std::memcpy(row.saved + at, saved, n * sizeof(saved[0]));
}

// Pointers to the rows that start at element (i, j) of C.
template <Epilogue kEpilogue, class Saver>
HWY_INLINE EpilogueRow<Saver> RowAt(const Gemm& g, size_t i, size_t j) {
  const size_t start = i * g.c_stride + j;
  EpilogueRow<Saver> row{g.c + start, nullptr, nullptr};
  if constexpr (HasBias(kEpilogue)) row.bias = g.bias + j;
  if constexpr (Saver::kSaves) row.saved = static_cast<typename Saver::Element*>(g.saved.data) + start;
  return row;
}

// Finishes rows i ... i + rows and columns j ... j + cols of C.
template <Epilogue kEpilogue, class Saver>
void Finish(const Gemm& g, size_t i, size_t rows, size_t j, size_t cols) {
  size_t r = i;
  for (; r + kFinishRows <= i + rows && cols == kTileCols; r += kFinishRows) {
    FinishVectors<kEpilogue, kFinishRows, kTileVecs>(RowAt<kEpilogue, Saver>(g, r, j), g.c_stride, 0);
  }
  for (; r < i + rows; ++r) {
    const EpilogueRow<Saver> row = RowAt<kEpilogue, Saver>(g, r, j);
    size_t at = 0;
    for (; at + kN <= cols; at += kN) FinishVectors<kEpilogue, 1, 1>(row, 0, at);
    if (at < cols) FinishTail<kEpilogue, Saver>(row, at, cols - at);
  }
}

using FinishFunction = void (*)(const Gemm&, size_t i, size_t rows, size_t j, size_t cols);

template <Epilogue kEpilogue>
HWY_INLINE FinishFunction FinishSaving(const SavedTensor& saved) {
  if (saved.data == nullptr) return kEpilogue == Epilogue::kNone ? nullptr : &Finish<kEpilogue, SaveNothing>;
  switch (saved.type) {
    case DType::kF32:
      return &Finish<kEpilogue, SaveAs<DType::kF32>>;
    case DType::kBF16:
      return &Finish<kEpilogue, SaveAs<DType::kBF16>>;
    case DType::kF16:
      return &Finish<kEpilogue, SaveAs<DType::kF16>>;
  }
  return nullptr;
}

// The function that finishes the tiles of a product; null if nothing is left to do.
HWY_INLINE FinishFunction FinishFor(const Gemm& g) {
  switch (g.epilogue) {
    case Epilogue::kNone:
      return FinishSaving<Epilogue::kNone>(g.saved);
    case Epilogue::kBias:
      return FinishSaving<Epilogue::kBias>(g.saved);
    case Epilogue::kBiasGelu:
      return FinishSaving<Epilogue::kBiasGelu>(g.saved);
    case Epilogue::kBiasRelu2:
      return FinishSaving<Epilogue::kBiasRelu2>(g.saved);
  }
  return nullptr;
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUERN_KERNELS_GEMM_EPILOGUE_INL_H_
