#include "nn/linear.h"

#include "kernels/column_sums.h"

namespace quern {

using kernels::Epilogue;
using kernels::Gemm;
using kernels::Layout;

namespace {

Gemm forward(const Linear& linear, const float* x, float* y, size_t rows, Epilogue epilogue) {
  return {.layout = Layout::kNN,
          .M = rows,
          .N = linear.out,
          .K = linear.in,
          .a = {x, linear.in},
          .b = {linear.weight, linear.out},
          .packed_b = linear.packed_forward,
          .c = y,
          .c_stride = linear.out,
          .epilogue = epilogue,
          .bias = linear.bias};
}

}  // namespace

void linear_forward(const Linear& linear, const float* x, float* y, size_t rows, std::span<float> scratch) {
  kernels::gemm(forward(linear, x, y, rows, Epilogue::kBias), scratch);
}

void linear_gelu_forward(const Linear& linear, const float* x, float* input, float* y, size_t rows,
                         std::span<float> scratch) {
  Gemm gemm = forward(linear, x, y, rows, Epilogue::kBiasGelu);
  gemm.gelu_input = input;
  kernels::gemm(gemm, scratch);
}

void linear_backward(const Linear& linear, const float* x, const float* dy, float* dx, const LinearGradient& gradient,
                     size_t rows, std::span<float> scratch) {
  kernels::gemm({.layout = Layout::kTN,
                 .M = linear.in,
                 .N = linear.out,
                 .K = rows,
                 .a = {x, linear.in},
                 .b = {dy, linear.out},
                 .c = gradient.weight,
                 .c_stride = linear.out,
                 .add = true},
                scratch);
  kernels::column_sums(dy, rows, linear.out, gradient.bias);
  kernels::gemm({.layout = Layout::kNT,
                 .M = rows,
                 .N = linear.in,
                 .K = linear.out,
                 .a = {dy, linear.out},
                 .b = {linear.weight, linear.out},
                 .packed_b = linear.packed_backward,
                 .c = dx,
                 .c_stride = linear.in},
                scratch);
}

}  // namespace quern
