// Folders of Hugging Face PEFT, right or wrong, for models of every family.
#pragma once

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_refs.h"
#include "core/files.h"
#include "core/json.h"
#include "formats/peft.h"
#include "nn/models/language_model.h"

namespace quern::test {

// Small models with what makes their adapters differ: groups of heads, biases, heads of another width, matrices that
// are stored as (in, out).
inline std::vector<std::pair<std::string, nn::ModelConfig>> adapted_models() {
  nn::ModelConfig base{.layers = 2, .heads = 4, .width = 32, .context = 16, .vocabulary = 50};
  const auto with = [&](nn::Family family, size_t kv_heads, size_t head_width) {
    nn::ModelConfig model = base;
    model.family = family;
    model.kv_heads = kv_heads;
    model.head_width = head_width;
    return model;
  };
  return {{"gpt2", base},
          {"llama", with(nn::Family::kLlama, 2, 0)},
          {"qwen2", with(nn::Family::kQwen2, 1, 0)},
          {"qwen3", with(nn::Family::kQwen3, 2, 12)}};
}

struct PeftTensor {
  std::vector<size_t> shape;
  std::vector<float> values;
  safetensors::Dtype dtype = safetensors::Dtype::kF32;  // kI32 has the same size, and is wrong
};

// A folder's contents, to be changed before they are written.
struct PeftFiles {
  nlohmann::json config;
  std::map<std::string, PeftTensor> tensors;

  void write(const std::filesystem::path& folder) const {
    create_folders(folder);
    write_file(folder / formats::kPeftConfigFile, json_text(config));
    std::vector<safetensors::Tensor> list;
    for (const auto& [name, tensor] : tensors) {
      list.push_back({name, tensor.dtype, tensor.shape, std::as_bytes(std::span(tensor.values))});
    }
    AtomicFile file(folder / formats::kPeftWeightsFile);
    safetensors::write(file.writer(), list, {{"format", "pt"}});
    file.commit();
  }
};

// Adapters with random values, of which B is not zero.
inline PeftFiles peft_files(nn::ModelConfig model, const nn::AdapterConfig& adapters, unsigned seed = 1) {
  model.adapters = adapters;
  PeftFiles files{.config = parse_json(formats::peft_config_file(model, "some/model").text), .tensors = {}};
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  const nn::Declaration declaration = nn::declare(model);
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    if (!parameter.adapter) continue;
    PeftTensor tensor{.shape = parameter.shape, .values = std::vector<float>(parameter.size)};
    for (float& value : tensor.values) value = normal(generator);
    files.tensors.emplace(checkpoint::peft_name(model, parameter.name), std::move(tensor));
  }
  return files;
}

}  // namespace quern::test
