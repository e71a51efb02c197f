// What a model consists of, before any memory is allocated: layers add to it when they are constructed.
#pragma once

#include "nn/activation_plan.h"
#include "nn/parameter_table.h"

namespace quern::nn {

struct Declaration {
  explicit Declaration(kernels::DType storage = kernels::DType::kF32) : activations(storage) {}

  ParameterTable parameters;
  ActivationPlan activations;
};

}  // namespace quern::nn
