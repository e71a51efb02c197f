// A low-rank adapter of a linear layer (LoRA, Hu et al. 2021): y = x W + s B A drop(x), where only A (rank, in) and B
// (out, rank) are trained. Names and shapes are those of PEFT, and so is the initial value: A uniform, B zero.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm.h"
#include "nn/declaration.h"
#include "nn/layers/dropout.h"
#include "nn/pass.h"

namespace quern::nn {

// What the matrices of an adapter are called, after the name of their layer.
inline constexpr std::string_view kAdapterA = ".lora_A.weight", kAdapterB = ".lora_B.weight";

class Adapter {
 public:
  // Of a layer `name` with `in` inputs and `out` outputs.
  Adapter(Declaration& model, const std::string& name, size_t in, size_t out);

  // work.low = s A drop(x), for x (rows, in). The members synchronize before and after.
  void reduce(const Pass& pass, const float* x, size_t rows) const;
  // Turns the product of a layer's forward pass into that which adds B work.low to it.
  void point_to_update(const Pass& pass, kernels::Gemm& product) const;

  // dx (rows, in) += the gradient through the adapter; leaves s B^T dy in work.dlow. A member's part of dx is that of
  // gemm_part(). The members synchronize.
  void backward_input(const Pass& pass, const kernels::Operand& dy, float* dx, size_t rows) const;
  // The gradients of A and B, in turn. x and dy must be complete. The members synchronize before it returns.
  void backward_weights(const Pass& pass, const float* x, const kernels::Operand& dy, size_t rows) const;

 private:
  // drop(x), which is x itself without dropout.
  const float* dropped(const Pass& pass, const float* x) const;
  bool drops(const Pass& pass) const { return site_.rate > 0.0f && pass.gradient != nullptr; }
  kernels::Operand low(const Pass& pass) const { return {pass.work.low.data(), rank_}; }
  kernels::Operand dlow(const Pass& pass) const { return {pass.work.dlow.data(), rank_}; }
  void scale_part(const Pass& pass, float* values, size_t rows) const;
  double flops(const Pass& pass, size_t rows, size_t products) const;

  size_t in_, out_, rank_;
  float scale_;
  ParameterId a_, b_;
  DropoutSite site_;
};

// The adapter of a layer, if the model has one for it.
std::optional<Adapter> make_adapter(Declaration& model, const std::string& name, size_t in, size_t out);

}  // namespace quern::nn
