// AdamW: momentum and a running mean of squares per parameter, decoupled weight decay.
#pragma once

#include <vector>

#include "kernels/adamw.h"
#include "optim/optimizer.h"

namespace quern {

class AdamW final : public Optimizer {
 public:
  static std::vector<StateSpec> states_of();  // first and second moments

  AdamW(const nn::ParameterTable& table, const OptimizerOptions& options) : Optimizer(table, options, states_of()) {}

 private:
  void prepare(const Update& update) override;
  void apply(const UpdatePiece& piece) override;
  UnitWork work(const UpdateUnit& unit) const override;

  kernels::AdamW step_;
};

// The part of AdamW's step that does not depend on the parameter: the bias corrections compensate for moments that
// start at zero, so they count updates, not steps.
kernels::AdamW adamw_step(const OptimizerOptions& options, float rate, float gradient_scale, uint64_t update);
// The work of AdamW on `n` numbers.
UnitWork adamw_work(size_t n);

}  // namespace quern
