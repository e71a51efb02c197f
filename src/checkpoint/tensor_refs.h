// The tensors of a model and its optimizer, as checkpoints store them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/models/language_model.h"
#include "nn/parameter_table.h"
#include "optim/optimizer.h"

namespace quern::checkpoint {

// References to the tensors of a buffer with this layout, adapters among them.
std::vector<TensorRef> tensor_refs(const nn::ParameterTable& table, std::span<float> values);

// The weights that a checkpoint of the model contains: all of them or, if it has adapters, those of the adapters alone,
// under their names in PEFT's files.
std::vector<TensorRef> weight_refs(nn::LanguageModel& model);

// The weights of an adapted model that do not belong to its adapters.
std::vector<TensorRef> base_refs(nn::LanguageModel& model);

// "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight": the name that PEFT gives a parameter of an adapter.
std::string peft_name(const nn::ModelConfig& model, std::string_view parameter);

// References to all states of an optimizer, PARAMETER.STATE.
std::vector<TensorRef> optimizer_refs(const nn::ParameterTable& table, Optimizer& optimizer);

}  // namespace quern::checkpoint
