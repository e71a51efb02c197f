#include "checkpoint/tensor_refs.h"

#include <fmt/format.h>

namespace quern::checkpoint {
namespace {

// Of the parameters that belong to adapters, or of the others.
std::vector<TensorRef> refs_of(nn::LanguageModel& model, bool adapters) {
  std::vector<TensorRef> refs;
  for (const nn::Parameter& parameter : model.parameters().all()) {
    if (parameter.adapter != adapters) continue;
    refs.push_back({adapters ? peft_name(model.config(), parameter.name) : parameter.name, parameter.shape,
                    model.weights().values().subspan(parameter.offset, parameter.size)});
  }
  return refs;
}

}  // namespace

std::vector<TensorRef> tensor_refs(const nn::ParameterTable& table, std::span<float> values) {
  std::vector<TensorRef> refs;
  for (const nn::Parameter& parameter : table.all()) {
    refs.push_back({parameter.name, parameter.shape, values.subspan(parameter.offset, parameter.size)});
  }
  return refs;
}

std::vector<TensorRef> weight_refs(nn::LanguageModel& model) {
  return refs_of(model, model.parameters().has_adapters());
}

std::vector<TensorRef> base_refs(nn::LanguageModel& model) { return refs_of(model, false); }

// transformers' GPT-2 has its blocks in a module `transformer`.
std::string peft_name(const nn::ModelConfig& model, std::string_view parameter) {
  return fmt::format("base_model.model.{}{}", model.is_gpt2() ? "transformer." : "", parameter);
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
