#include "formats/merge.h"

#include <memory>
#include <string>
#include <utility>

#include "nn/layers/adapter.h"
#include "nn/models/language_model.h"

namespace quern::formats {
namespace {

// What is added to a matrix: rows of s B A, or of its transpose if the matrix is stored as (in, out).
struct Update {
  std::span<const float> a, b;  // (rank, in), (out, rank)
  size_t rank, in, out;
  double scale;
  bool in_out;

  // The factor of row k of the other matrix in row `row` of the update.
  double factor(size_t row, size_t k) const {
    return scale * static_cast<double>(in_out ? a[k * in + row] : b[row * rank + k]);
  }
  double other(size_t k, size_t column) const {
    return static_cast<double>(in_out ? b[column * rank + k] : a[k * in + column]);
  }
  size_t width() const { return in_out ? out : in; }

  void add_to(size_t row, std::span<float> values, std::span<double> sums) const {
    for (size_t j = 0; j < values.size(); ++j) sums[j] = static_cast<double>(values[j]);
    for (size_t k = 0; k < rank; ++k) {
      const double f = factor(row, k);
      for (size_t j = 0; j < values.size(); ++j) sums[j] += f * other(k, j);
    }
    for (size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>(sums[j]);
  }
};

TensorSource merged(TensorSource base, Update update) {
  const auto sums = std::make_shared<std::vector<double>>(update.width());
  const auto add = [read = std::move(base.read), update, sums](size_t first, std::span<float> out) {
    read(first, out);
    const size_t width = update.width();
    for (size_t row = 0; row * width < out.size(); ++row) {
      update.add_to(first + row, out.subspan(row * width, width), *sums);
    }
  };
  return {std::move(base.name), std::move(base.shape), add};
}

const nn::Parameter* find(const nn::ParameterTable& table, const std::string& name) {
  for (const nn::Parameter& parameter : table.all()) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

}  // namespace

std::vector<TensorSource> merged_weights(const nn::ModelConfig& model, const AdaptedWeights& weights) {
  const nn::Declaration declaration = nn::declare(model);
  const nn::ParameterTable& table = declaration.parameters;
  std::vector<TensorSource> sources;
  for (const nn::Parameter& parameter : table.all()) {
    if (parameter.adapter) continue;
    sources.push_back(weights.base(parameter));
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const nn::Parameter* a = find(table, layer + std::string(nn::kAdapterA));
    if (a == nullptr || !parameter.is_matrix()) continue;
    const nn::Parameter& b = *find(table, layer + std::string(nn::kAdapterB));
    sources.back() = merged(std::move(sources.back()), {.a = weights.adapters(*a),
                                                        .b = weights.adapters(b),
                                                        .rank = a->shape[0],
                                                        .in = a->shape[1],
                                                        .out = b.shape[0],
                                                        .scale = model.adapters.scale(),
                                                        .in_out = parameter.product == nn::Product::kInOut});
  }
  return sources;
}

nn::ModelConfig without_adapters(nn::ModelConfig model) {
  model.adapters = {};
  return model;
}

}  // namespace quern::formats
