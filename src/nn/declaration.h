// What a model consists of, before any memory is allocated: layers add to it when they are constructed.
#pragma once

#include <string>
#include <vector>

#include "core/columns.h"
#include "nn/activation_plan.h"
#include "nn/adapter_config.h"
#include "nn/parameter_table.h"

namespace quern::nn {

inline constexpr size_t kMaxLossParts = 4;

struct Declaration {
  explicit Declaration(kernels::DType storage = kernels::DType::kF32) : activations(storage) {}

  ParameterTable parameters;
  ActivationPlan activations;
  std::vector<ColumnSpec> columns;  // of a batch, that the layers read
  // Targets of a sequence that count for the loss, if all do: the loss of a step is the mean over them. 0: as many as
  // it has rows.
  size_t targets_per_sequence = 0;
  // The loss is the sum of these, which are reported one by one. The loss of a sequence's part p is that of its row p
  // (Workspace::losses); a loss without parts may be spread over all rows.
  std::vector<std::string> loss_parts = {"loss"};
  size_t constant_bytes = 0;                  // of tables that are computed once and shared by all workers
  AdapterConfig adapters = {};                // set before the layers are constructed
  std::vector<std::string> linears, adapted;  // linear layers inside blocks, and those of them with an adapter
};

}  // namespace quern::nn
