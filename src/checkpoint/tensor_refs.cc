#include "checkpoint/tensor_refs.h"

namespace quern::checkpoint {

std::vector<TensorRef> tensor_refs(const nn::ParameterTable& table, std::span<float> values) {
  std::vector<TensorRef> refs;
  for (const nn::Parameter& parameter : table.all()) {
    refs.push_back({parameter.name, parameter.shape, values.subspan(parameter.offset, parameter.size)});
  }
  return refs;
}

std::vector<TensorRef> optimizer_refs(const nn::ParameterTable& table, Optimizer& optimizer) {
  std::vector<TensorRef> refs;
  for (OptimizerState& state : optimizer.states()) {
    for (size_t i = 0; i < table.all().size(); ++i) {
      const nn::Parameter& parameter = table.all()[i];
      if (state.offsets[i] == OptimizerState::kNone) continue;
      refs.push_back({parameter.name + "." + state.name, parameter.shape,
                      state.values.span().subspan(state.offsets[i], parameter.size)});
    }
  }
  return refs;
}

}  // namespace quern::checkpoint
