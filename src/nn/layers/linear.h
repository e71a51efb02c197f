// y = x W + b and its gradients, through GEMM.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/gemm.h"
#include "nn/pass.h"

namespace quern {

// A linear layer's weights: W (in, out), b (out). Packed copies, if not null, are used instead of W.
struct Linear {
  const float* weight = nullptr;
  const float* bias = nullptr;
  size_t in = 0, out = 0;
  const void* packed_forward = nullptr;   // pack_b(kNN, W, in, out)
  const void* packed_backward = nullptr;  // pack_b(kNT, W, out, in)
  kernels::DType packed_type = kernels::DType::kF32;
};

// A member's part of a product. Columns of C are split first, because then no two members read or pack the same part of
// B; rows are split too if there are more members than column panels.
void gemm_part(const kernels::Gemm& gemm, const Member& member, std::span<float> scratch);

// The output of a linear layer: y (rows, out) and, if `saved` is not null, a copy for backward, from which y is
// derived.
struct LinearOut {
  float* y;
  kernels::SavedTensor saved = {};
};

// y = x (rows, in) W + b: a member's part. `saved` receives the same values in its own format.
void linear_forward(const Linear& linear, const float* x, const LinearOut& out, size_t rows, std::span<float> scratch,
                    const Member& member = {});

// y = gelu(x W + b); `saved` receives x W + b.
void linear_gelu_forward(const Linear& linear, const float* x, const LinearOut& out, size_t rows,
                         std::span<float> scratch, const Member& member = {});

// dx (rows, in) = dy W^T, overwritten: a member's part. dy must be complete: the members have synchronized.
void linear_backward_input(const Pass& pass, const Linear& linear, const float* dy, float* dx);

// Adds, in turn, x^T dy and the column sums of dy to the gradient of the layer at `slots`. x and dy must be complete:
// the members have synchronized. They synchronize again before either is overwritten.
void linear_backward_weights(const Pass& pass, const LinearSlots& slots, const float* x, const float* dy);

// Adds a^T (rows, M) b (rows, width), in turn, to the gradient of the matrix (M, width) with tensor index `tensor`:
// this member's part of the matrix, passed on in as many pieces as the gradient asks for. a and b must be complete: the
// members have synchronized. `first` and `last`: whether to wait for the turn before and to pass it on after; the sum
// continues across the calls in between.
struct AddProduct {
  size_t tensor;
  const float* a;
  size_t a_stride;
  const float* b;
  size_t rows;
  bool first = true, last = true;
};
void add_product_in_turn(const Pass& pass, const AddProduct& args);

}  // namespace quern
