// AdamW: momentum and a running mean of squares per parameter, decoupled weight decay.
#pragma once

#include <array>

#include "kernels/adamw.h"
#include "optim/optimizer.h"

namespace quern {

class AdamW final : public Optimizer {
 public:
  static constexpr std::array kStates = {"m", "v"};  // first and second moments

  AdamW(const nn::ParameterTable& table, const OptimizerOptions& options) : Optimizer(table, options, kStates) {}

 private:
  void prepare(const Update& update) override;
  void apply(const nn::Segment& segment, size_t offset, size_t n, float* weights, const float* gradient) override;

  kernels::AdamW step_;
};

}  // namespace quern
