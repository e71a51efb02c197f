// Normalization of the residual stream: LayerNorm with weight and bias, or RMS norm with or without a weight.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "nn/declaration.h"
#include "nn/layers/kinds.h"
#include "nn/pass.h"
#include "nn/regions.h"

namespace quern::nn {

struct NormSpec {
  std::string name;  // its parameters, if any, are NAME.weight and NAME.bias
  size_t width;
  const NormRegions& regions;
  std::optional<size_t> block = {};  // for profiles
  NormKind kind = NormKind::kLayernorm;
  float epsilon = 1e-5f;
  bool weighted = true;  // of RMS norm
};

class Norm {
 public:
  // `saved` is the plan of the block that the norm belongs to, or of the head.
  Norm(Declaration& model, SavedPlan& saved, const NormSpec& spec);

  // work.inner = norm(sum) with sum = x + work.delta, or `sum` as given if x is null: this member's rows. `sum` may
  // alias x. An observer sees the sum as `input`, unless that is empty.
  void forward(const Pass& pass, const SavedSet& saved, const float* x, float* sum, std::string_view input = {}) const;
  // The same for these rows only, by the calling member alone, saving nothing.
  void forward_rows(const Pass& pass, const float* x, float* sum, Range rows) const;

  // Recomputes the output into work.inner, after which the members synchronize.
  void forward_again(const Pass& pass, const SavedSet& saved) const;

  // work.dx += the gradient through the norm, whose output gradient is work.dinner; weight gradients in turn. The
  // members synchronize.
  void backward(const Pass& pass, const SavedSet& saved) const;

  const std::string& name() const { return name_; }

 private:
  void run(const Pass& pass, const float* x, float* sum, Range rows, const SavedTensor& normal,
           float* reciprocal) const;
  void run_layernorm(const Pass& pass, const float* x, float* sum, Range rows, const SavedTensor& normal,
                     float* reciprocal) const;
  void run_rmsnorm(const Pass& pass, const float* x, float* sum, Range rows, const SavedTensor& normal,
                   float* reciprocal) const;
  void backward_layernorm(const Pass& pass, const SavedSet& saved) const;
  void backward_rmsnorm(const Pass& pass, const SavedSet& saved) const;
  void backward_weighted_rmsnorm(const Pass& pass, const SavedSet& saved) const;
  bool trains(const Pass& pass, const std::optional<ParameterId>& vector) const;
  float* enter(const Pass& pass, const std::optional<ParameterId>& vector) const;
  void leave(const Pass& pass, const std::optional<ParameterId>& vector) const;
  const float* weight_of(const Pass& pass) const { return weight_ ? pass.weights.at(*weight_) : nullptr; }

  std::string name_;
  size_t width_;
  NormKind kind_;
  float epsilon_;
  std::optional<ParameterId> weight_, bias_;
  SlotId normal_;      // (R, C) the normalized input; the output is recomputed from it
  SlotId reciprocal_;  // (R) of the input's standard deviation, or root mean square
  const NormRegions* regions_;
  int32_t tag_;
};

}  // namespace quern::nn
