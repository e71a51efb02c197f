// The tensors of a model, or of a buffer with its layout, as a checkpoint saves and loads them.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/parameters.h"

namespace quern::checkpoint {

// References to the tensors of a buffer with this layout.
std::vector<TensorRef> tensor_refs(const ParameterLayout& layout, std::span<float> values);

}  // namespace quern::checkpoint
