// y = x W + b and its gradients, through GEMM. A low-rank adapter may be added to W.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "kernels/gemm.h"
#include "nn/declaration.h"
#include "nn/layers/adapter.h"
#include "nn/layers/kinds.h"
#include "nn/layers/products.h"
#include "nn/pass.h"
#include "nn/regions.h"

namespace quern::nn {

// The output of a linear layer: y (rows, out) and, if `saved` is not null, a copy for backward, from which y is
// derived. Rows of both are `stride` numbers apart; 0: `out` of them.
struct LinearOut {
  float* y;
  SavedTensor saved = {};
  size_t stride = 0;
};

// The gradient of such an output, with the same stride.
struct LinearGradient {
  const float* dy;
  size_t stride = 0;
  LinearGradient(const float* values, size_t floats = 0) : dy(values), stride(floats) {}
};

struct LinearSpec {
  std::string name;  // its parameters are NAME.weight and NAME.bias
  size_t in, out;
  const LinearRegions& regions;
  std::optional<size_t> block = {};  // for profiles
  bool bias = true;
  Product order = Product::kInOut;
  Initial initial = Initial::normal(0.02);
  bool trainable = true;
  bool hidden = true;  // as in ParameterSpec; only such layers have adapters
  size_t parts = 1;    // as in ParameterSpec
};

class Linear {
 public:
  Linear(Declaration& model, const LinearSpec& spec);
  // Without a bias, and with the rows of `table` (out, in) as its matrix.
  Linear(Declaration& model, ParameterId table, const LinearRegions& regions);

  // y = x (rows, in) W + b: a member's part. `saved` receives the same values in its own format.
  void forward(const Pass& pass, const float* x, const LinearOut& out, size_t rows) const;
  // y = activation(x W + b); `saved` receives x W + b. Requires a bias.
  void forward_activated(const Pass& pass, const float* x, const LinearOut& out, size_t rows,
                         Activation activation) const;

  // dx (rows, in) = dy W^T, or += if `add` is true: a member's part. dy must be complete: the members have
  // synchronized.
  void backward_input(const Pass& pass, const LinearGradient& dy, float* dx, size_t rows, bool add = false) const;

  // Adds, in turn, x^T dy and the column sums of dy to the gradient of weight and bias, unless they are not trainable,
  // and those of the adapter, which needs what backward_input() with the same dy left in work.dlow.
  // x and dy must be complete: the members have synchronized. They synchronize again before either is overwritten.
  // Between `first` and `last` calls the sum continues.
  void backward_weights(const Pass& pass, const float* x, const LinearGradient& dy, size_t rows,
                        const TurnEnds& ends = {}) const;

  size_t in() const { return in_; }
  size_t out() const { return out_; }
  ParameterId weight() const { return weight_; }
  const std::string& name() const { return name_; }

 private:
  void run_forward(const Pass& pass, const float* x, const LinearOut& out, size_t rows,
                   kernels::Epilogue epilogue) const;
  void add_bias(const Pass& pass, const kernels::Operand& dy, size_t rows) const;
  kernels::Operand operand(const LinearGradient& dy) const { return {dy.dy, dy.stride == 0 ? out_ : dy.stride}; }

  std::string name_;
  size_t in_, out_;
  Product order_;
  ParameterId weight_;
  std::optional<ParameterId> bias_;
  std::optional<Adapter> adapter_;
  const LinearRegions* regions_;
  int32_t tag_;
};

}  // namespace quern::nn
