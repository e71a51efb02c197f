// Adapters merged into the weights of the model that they belong to: W + s B A.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/tensor_source.h"
#include "nn/models/model_config.h"
#include "nn/parameter_table.h"

namespace quern::formats {

// Where the weights of an adapted model are. The values must stay valid while the result is read.
struct AdaptedWeights {
  std::function<TensorSource(const nn::Parameter&)> base;                // of the model that is adapted
  std::function<std::span<const float>(const nn::Parameter&)> adapters;  // a matrix of an adapter
};

// Every parameter of `model` without its adapters, in its order, with them merged. Sums are in double precision and
// rounded once. Without adapters, the parameters as they are.
std::vector<TensorSource> merged_weights(const nn::ModelConfig& model, const AdaptedWeights& weights);

// The same model without adapters.
nn::ModelConfig without_adapters(nn::ModelConfig model);

}  // namespace quern::formats
