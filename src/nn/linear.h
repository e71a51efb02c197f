// y = x W + b and its gradients, through GEMM.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/gemm.h"
#include "nn/pass.h"

namespace quern {

// A linear layer's weights: W (in, out), b (out). Packed copies, where they are not null, are used instead of W.
struct Linear {
  const float* weight = nullptr;
  const float* bias = nullptr;
  size_t in = 0, out = 0;
  const float* packed_forward = nullptr;   // pack_b(kNN, W, in, out)
  const float* packed_backward = nullptr;  // pack_b(kNT, W, out, in)
};

// A member's part of a product: columns of C first, since then no two members read or pack the same part of B; rows too
// when there are more members than panels of columns.
void gemm_part(const kernels::Gemm& gemm, const Member& member, std::span<float> scratch);

// y (rows, out) = x (rows, in) W + b: a member's part of it.
void linear_forward(const Linear& linear, const float* x, float* y, size_t rows, std::span<float> scratch,
                    const Member& member = {});

// y = gelu(x W + b); `input` (rows, out) receives x W + b, for backward.
void linear_gelu_forward(const Linear& linear, const float* x, float* input, float* y, size_t rows,
                         std::span<float> scratch, const Member& member = {});

// dx (rows, in) = dy W^T (overwritten), and adds, in turn, x^T dy and the column sums of dy to the gradient of the
// layer at `slots`. x and dy are whole: the members have met. They meet again before it returns.
void linear_backward(const Pass& pass, const Linear& linear, const LinearSlots& slots, const float* x, const float* dy,
                     float* dx);

// Adds a^T (rows, M) b (rows, width), in turn, to the gradient of the matrix (M, width) that is tensor `tensor`: this
// member's part of the matrix, passed on in as many pieces as the gradient wants. a and b are whole: the members have
// met. `first` and `last`: whether to take the turn before and to pass it on after; the sum goes on over calls in
// between.
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
