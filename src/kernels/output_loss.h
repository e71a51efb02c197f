// The output projection fused with cross entropy, a few rows at a time: the full logits never exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/gemm.h"

namespace quern::kernels {

struct OutputLoss {
  size_t rows = 0, C = 0, V = 0;
  const float* x = nullptr;                         // (rows, C), contiguous
  Operand weight;                                   // (V, C): the tied token embedding
  const float* packed_weight = nullptr;             // instead, pack_b(kNT, weight, C, V): for the logits x weight^T
  const float* packed_weight_transposed = nullptr;  // instead, pack_b(kNN, weight, V, C): for dx = dlogits weight
  const int32_t* targets = nullptr;                 // (rows), kIgnoreTarget for none
  float scale = 1.0f;                               // times the gradient: loss scale / tokens of the whole step
  float* losses = nullptr;                          // (rows): overwritten
  float* dx = nullptr;                              // (rows, C): overwritten; null for the loss alone
  float* dweight = nullptr;                         // (V, C) +=, rows in order; null for none
  size_t chunk = 64;                                // rows whose logits exist at once
};

// Floats of scratch for one call: chunk x V logits and what gemm() needs.
size_t output_loss_scratch(size_t chunk, size_t V) noexcept;

// losses, dx and dweight as the fields say. Their bits do not depend on `chunk`: a row is alone, and dweight's chains
// go on from chunk to chunk. Arrays must not overlap. Any thread, no allocation.
void output_loss(const OutputLoss& args, std::span<float> scratch) noexcept;

}  // namespace quern::kernels
