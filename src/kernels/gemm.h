// Matrix products: C = A B, C = A B^T, C = A^T B, overwriting or adding, with fused epilogues.
//
// The numerical contract (promise I6): element (i, j) of C is one chain of fused multiply-adds over k = 0, 1, ... K-1,
// which starts from 0 (overwrite) or from C's old value (add). Nothing else affects it: not the tile, the block sizes,
// the vector width, the alignment, nor how the caller divides rows and columns of C between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/range.h"
#include "kernels/types.h"

namespace quern::kernels {

// Memory layout of A and B, both row-major: N as written, T transposed.
enum class Layout : uint8_t {
  kNN,  // A (M, K), B (K, N)
  kNT,  // A (M, K), B (N, K)
  kTN,  // A (K, M), B (K, N)
};

struct Operand {
  const void* data = nullptr;
  size_t stride = 0;  // elements between rows as stored
  DType type = DType::kF32;
};

// Applied to a finished element x before it is stored; with `add`, x is a chain that started from C.
enum class Epilogue : uint8_t {
  kNone,
  kBias,       // x + bias[j]
  kBiasGelu,   // gelu(x + bias[j])
  kBiasRelu2,  // max(x + bias[j], 0)^2
};

struct Gemm {
  Layout layout = Layout::kNN;
  size_t M = 0, N = 0, K = 0;
  Operand a, b;
  const void* packed_b = nullptr;  // instead of b: the output of pack_b for this (K, N)
  DType packed_type = DType::kF32;
  float* c = nullptr;
  size_t c_stride = 0;
  bool add = false;  // C += instead of C =
  Epilogue epilogue = Epilogue::kNone;
  const float* bias = nullptr;  // (N)
  // Where to save y = x + bias[j], or x without a bias, for backward: (M, N) with c_stride; not saved if null. As bf16
  // or fp16 it is rounded to nearest even, and C is computed from the rounded value: C is y as backward will read it,
  // or the activation of that.
  SavedTensor saved = {};
};

// Floats of scratch that a gemm() call needs; one scratch buffer per thread.
inline constexpr size_t kGemmScratch = size_t{320} << 10;

// Computes C. C must not overlap A, B or the bias. Any alignment, any thread, no allocation. K = 0 gives 0 (or C).
// scratch.size() >= kGemmScratch.
void gemm(const Gemm& args, std::span<float> scratch) noexcept;

// A (K, N) operand B packed in advance, for weights that many calls use. The layout depends on the current target: pack
// again after select_target(). Packing as bf16 or fp16 rounds to nearest even, bit-identical to to_bf16() and to_f16(),
// and a product is bit-identical to the fp32 product with B rounded first.
size_t packed_size(size_t K, size_t N) noexcept;  // elements
// Packs b, stored according to `layout` (kTN like kNN), into `packed` (packed_size(K, N) elements).
void pack_b(Layout layout, const Operand& b, size_t K, size_t N, void* packed,
            DType packed_type = DType::kF32) noexcept;

// Columns of a packed operand can be divided between threads at multiples of this, on every target.
inline constexpr size_t kPanelColumns = 48;

// Packs a part of (K, N) into its position; other threads may pack other parts concurrently.
struct PackB {
  Layout layout = Layout::kNN;
  Operand b;               // the entire operand
  size_t K = 0;            // of the entire operand
  void* packed = nullptr;  // the entire packed operand
  DType packed_type = DType::kF32;
  Range rows, columns;  // of (K, N); columns begin at a multiple of kPanelColumns and end at one or at N
};
void pack_b(const PackB& args) noexcept;

// The product restricted to these rows and columns of C. With packed_b, columns must begin at a multiple of
// kPanelColumns.
Gemm block_of(const Gemm& args, Range rows, Range columns) noexcept;

}  // namespace quern::kernels
