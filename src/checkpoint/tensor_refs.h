// The tensors of a model, or of a buffer with its layout, as a checkpoint saves and loads them.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/parameter_table.h"
#include "optim/optimizer.h"

namespace quern::checkpoint {

// References to the tensors of a buffer with this layout.
std::vector<TensorRef> tensor_refs(const nn::ParameterTable& table, std::span<float> values);

// References to all states of an optimizer, PARAMETER.STATE.
std::vector<TensorRef> optimizer_refs(const nn::ParameterTable& table, Optimizer& optimizer);

}  // namespace quern::checkpoint
