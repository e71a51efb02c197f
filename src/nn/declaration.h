// What a model consists of, before any memory is allocated: layers add to it when they are constructed.
#pragma once

#include <vector>

#include "core/columns.h"
#include "nn/activation_plan.h"
#include "nn/parameter_table.h"

namespace quern::nn {

struct Declaration {
  explicit Declaration(kernels::DType storage = kernels::DType::kF32) : activations(storage) {}

  ParameterTable parameters;
  ActivationPlan activations;
  std::vector<ColumnSpec> columns;  // of a batch, that the layers read
  size_t constant_bytes = 0;        // of tables that are computed once and shared by all workers
};

}  // namespace quern::nn
