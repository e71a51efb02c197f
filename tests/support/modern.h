// The settings of a model that differs from GPT-2 in all of them.
#pragma once

#include "config/config.h"

namespace quern::test {

inline train::RunConfig::Model modern(train::RunConfig::Model model) {
  model.norm = nn::NormKind::kRmsnorm;
  model.positions = nn::Positions::kRotary;
  model.activation = nn::Activation::kRelu2;
  model.qk_norm = model.zero_projections = true;
  model.tied_output = false;
  model.logit_cap = 15;
  return model;
}

}  // namespace quern::test
