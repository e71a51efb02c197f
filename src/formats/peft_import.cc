#include "formats/peft_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "checkpoint/tensor_refs.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "formats/hf_config_reader.h"
#include "formats/hf_weights.h"
#include "formats/model_files.h"
#include "formats/peft.h"
#include "formats/peft_config.h"
#include "nn/layers/adapter.h"
#include "nn/models/language_model.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

// Where the names of a model's parameters start in those of PEFT.
std::string prefix_of(const nn::ModelConfig& model) { return checkpoint::peft_name(model, ""); }

[[noreturn]] void refuse(const fs::path& file, const std::string& tensor, std::string_view expected) {
  throw Error("[import] {}: expected {}, found tensor {}", file.string(), expected, in_quotes(tensor));
}

bool is_outside(std::string_view name) {
  constexpr std::string_view kOutside[] = {"lm_head", "embed_tokens", "wte", "wpe"};
  return std::ranges::any_of(kOutside, [&](std::string_view part) { return nn::has_part(name, part); });
}

// The layer that a tensor belongs to.
std::string layer_of(const fs::path& file, const std::string& tensor, const nn::ModelConfig& model,
                     const std::set<std::string>& linears) {
  if (is_outside(tensor)) {
    refuse(file, tensor, "adapters of linear layers, which embeddings and the output are not here");
  }
  const std::string prefix = prefix_of(model);
  const bool ends = tensor.ends_with(nn::kAdapterA) || tensor.ends_with(nn::kAdapterB);
  if (!tensor.starts_with(prefix) || !ends || tensor.size() < prefix.size() + nn::kAdapterA.size()) {
    refuse(file, tensor, fmt::format("names like {}LAYER{} or {}", prefix, nn::kAdapterA, nn::kAdapterB));
  }
  std::string layer = tensor.substr(prefix.size(), tensor.size() - prefix.size() - nn::kAdapterA.size());
  if (!linears.contains(layer)) refuse(file, tensor, "adapters of linear layers that the base model has");
  return layer;
}

// The number in a layer's name: that of its block.
size_t block_of(std::string_view layer) {
  const size_t digit = layer.find_first_of("0123456789");
  size_t block = 0;
  std::from_chars(layer.data() + std::min(digit, layer.size()), layer.data() + layer.size(), block);
  return block;
}

// The layers with tensors, in the order of `linears`.
std::vector<std::string> adapted_layers(const fs::path& file, const HfWeights& weights, const nn::ModelConfig& model,
                                        const PeftConfig& config, const std::vector<std::string>& linears) {
  const std::set<std::string> known(linears.begin(), linears.end());
  std::set<std::string> found;
  for (const std::string& tensor : weights.names()) {
    const std::string layer = layer_of(file, tensor, model, known);
    const std::string_view module = std::string_view(tensor).substr(std::string_view("base_model.model.").size());
    if (!config.covers(module.substr(0, module.size() - nn::kAdapterA.size()), block_of(layer))) {
      refuse(file, tensor, "adapters of target_modules and layers_to_transform alone");
    }
    found.insert(layer);
  }
  if (found.empty()) throw Error("[import] {}: expected the tensors of adapters, found none", file.string());
  std::vector<std::string> layers;
  std::ranges::copy_if(linears, std::back_inserter(layers), [&](const auto& name) { return found.contains(name); });
  return layers;
}

std::string shape_text(const std::vector<size_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

// The same tensor, which is an Error when a value is read that is not finite.
TensorSource checked(TensorSource source, const fs::path& file) {
  source.read = [read = std::move(source.read), name = source.name, file](size_t first, std::span<float> out) {
    read(first, out);
    const auto bad = std::ranges::find_if(out, [](float value) { return !std::isfinite(value); });
    if (bad == out.end()) return;
    throw Error("[import] {}: tensor {}: expected finite values, found {}", file.string(), in_quotes(name), *bad);
  };
  return source;
}

TensorSource take(const HfWeights& weights, const nn::ModelConfig& model, const nn::Parameter& parameter,
                  const fs::path& file) {
  const std::string name = checkpoint::peft_name(model, parameter.name);
  if (!weights.contains(name)) {
    throw Error("[import] {}: expected tensor {} of shape {}, the other half of an adapter, found none of that name",
                file.string(), in_quotes(name), shape_text(parameter.shape));
  }
  if (weights.shape(name) != parameter.shape) {
    throw Error("[import] {}: tensor {}: expected shape {} for r = {} and the base model, found {}", file.string(),
                in_quotes(name), shape_text(parameter.shape), model.adapters.rank, shape_text(weights.shape(name)));
  }
  return checked(weights.source(name, name), file);
}

HfWeights open_weights(const fs::path& folder) {
  if (fs::exists(folder / kPeftWeightsFile)) return HfWeights(folder, kPeftWeightsFile);
  const bool old = fs::exists(folder / "adapter_model.bin");
  throw Error("[import] {}: expected {}, found {}", folder.string(), kPeftWeightsFile,
              old ? "adapter_model.bin; load it with peft and save_pretrained() it again" : "none");
}

std::vector<checkpoint::ExtraFile> chat_template(const fs::path& folder) {
  std::vector<checkpoint::ExtraFile> files = read_model_files(folder);
  std::erase_if(files, [](const checkpoint::ExtraFile& file) { return file.name != kChatTemplateFile; });
  return files;
}

}  // namespace

bool is_peft_folder(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  return has(kPeftConfigFile) && !has("model.safetensors") && !has("model.safetensors.index.json");
}

AdapterSource open_peft_folder(const fs::path& folder, const nn::ModelConfig& base) {
  const fs::path path = folder / kPeftConfigFile, file = folder / kPeftWeightsFile;
  if (!fs::exists(path)) {
    throw Error("[import] {}: expected a PEFT folder with an {}, found none; import a whole model without --base",
                folder.string(), kPeftConfigFile);
  }
  const PeftConfig config = parse_peft_config(read_file(path, kMaxHfConfigBytes), path.string(), base);
  const auto weights = std::make_shared<const HfWeights>(open_weights(folder));
  const std::vector<std::string> linears = nn::declare(base).linears;
  AdapterSource source;
  source.model = base;
  source.base = config.base;
  source.files = chat_template(folder);
  source.owner = weights;
  source.model.adapters = config.adapters;
  source.model.adapters.targets = adapter_targets(linears, adapted_layers(file, *weights, base, config, linears));
  const nn::Declaration declaration = nn::declare(source.model);
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    if (parameter.adapter) source.tensors.push_back(take(*weights, source.model, parameter, file));
  }
  source.type = weights->dtype(source.tensors.front().name);
  source.check_intact = [weights] { weights->check_intact(); };
  return source;
}

}  // namespace quern::formats
