// Matrix products: C = A B, C = A B^T, C = A^T B, overwriting or adding, with fused epilogues.
//
// The numerical contract (promise I6): element (i, j) of C is one chain of fused multiply-adds over k = 0, 1, ... K-1,
// which starts from 0 (overwrite) or from C's old value (add). Nothing else enters it: not the tile, the block sizes,
// the vector width, the alignment, nor how the caller cuts rows and columns of C between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/range.h"
#include "kernels/types.h"

namespace quern::kernels {

// How A and B lie in memory, both row-major: N as written, T transposed.
enum class Layout : uint8_t {
  kNN,  // A (M, K), B (K, N)
  kNT,  // A (M, K), B (N, K)
  kTN,  // A (K, M), B (K, N)
};

struct Operand {
  const void* data = nullptr;
  size_t stride = 0;  // elements from a row, as it lies in memory, to the next
  DType type = DType::kF32;
};

// What happens to a finished element x before it is stored; with `add`, x is a chain that started from C.
enum class Epilogue : uint8_t {
  kNone,
  kBias,          // x + bias[j]
  kBiasGelu,      // gelu(x + bias[j])
  kResidual,      // x + residual[i, j]
  kBiasResidual,  // (x + bias[j]) + residual[i, j]
};

struct Gemm {
  Layout layout = Layout::kNN;
  size_t M = 0, N = 0, K = 0;
  Operand a, b;
  const void* packed_b = nullptr;  // instead of b: what pack_b wrote for this (K, N)
  DType packed_type = DType::kF32;
  float* c = nullptr;
  size_t c_stride = 0;
  bool add = false;  // C += instead of C =
  Epilogue epilogue = Epilogue::kNone;
  const float* bias = nullptr;      // (N)
  const float* residual = nullptr;  // (M, N) with c_stride, not C itself: to add to C in place use `add`
  // Where y = x + bias[j], or x without a bias, is kept for backward: (M, N) with c_stride; null: nowhere. As bf16 or
  // fp16 it is rounded to nearest even, and C follows from the rounded value: C is y as backward will read it, or gelu
  // of that. Not with a residual.
  SavedTensor saved = {};
};

// Floats of scratch that any gemm() call needs; one scratch per thread.
inline constexpr size_t kGemmScratch = size_t{320} << 10;

// Computes C. C must not overlap A, B or the bias. Any alignment, any thread, no allocation. K = 0 gives 0 (or C).
// scratch.size() >= kGemmScratch.
void gemm(const Gemm& args, std::span<float> scratch) noexcept;

// A (K, N) operand B packed ahead, for weights that many calls use. The layout belongs to the current target: pack
// again after select_target(). Packed as bf16 or fp16 it is rounded to nearest even, with the bits of to_bf16() and
// to_f16(), and a product has the bits of the fp32 product with B rounded first.
size_t packed_size(size_t K, size_t N) noexcept;  // elements
// Packs b, which lies as layout says (kTN as kNN), into `packed` (packed_size(K, N) elements).
void pack_b(Layout layout, const Operand& b, size_t K, size_t N, void* packed,
            DType packed_type = DType::kF32) noexcept;

// Columns of a packed operand can be divided between threads at multiples of this, on every target.
inline constexpr size_t kPanelColumns = 48;

// Packs a part of (K, N) into its place: other parts may be packed by other threads at the same time.
struct PackB {
  Layout layout = Layout::kNN;
  Operand b;               // the whole
  size_t K = 0;            // of the whole
  void* packed = nullptr;  // the whole
  DType packed_type = DType::kF32;
  Range rows, columns;  // of (K, N); columns begin at a multiple of kPanelColumns and end at one or at N
};
void pack_b(const PackB& args) noexcept;

// The product that computes only these rows and columns of C. With packed_b, columns begin at a multiple of
// kPanelColumns.
Gemm block_of(const Gemm& args, Range rows, Range columns) noexcept;

}  // namespace quern::kernels
