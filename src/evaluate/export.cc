// SavedModel::export_to() and TrainedModel::export_to(): which weights are exported, and from where.
#include <algorithm>
#include <system_error>
#include <utility>

#include "checkpoint/tensor_refs.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/base_model.h"
#include "evaluate/load.h"
#include "formats/merge.h"
#include "formats/model_files.h"
#include "formats/peft.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using formats::TensorSource;

// Other files among the checkpoints of a run would be taken for damaged ones.
void check_place(const fs::path& out) {
  std::error_code ignored;
  const fs::path parent = fs::weakly_canonical(out, ignored).parent_path();
  if (parent.filename() != kCheckpointFolder || !fs::exists(parent.parent_path() / kConfigFile)) return;
  throw Error("[export] {}: expected a place outside the checkpoints of a run, found {}", out.string(),
              parent.string());
}

// Nobody gets a merged model, or adapters alone, without having asked for it.
void check_choice(const fs::path& folder, bool adapted, const formats::ExportOptions& options) {
  const std::string_view to = formats::format_name(options.to);
  const bool alone = formats::writes_adapters(options.to);
  if (!adapted && alone) {
    throw Error(
        "[export] {}: expected a run with adapters for --to {}, found a whole model; choose --to hf or --to gguf",
        folder.string(), to);
  }
  if (!adapted && options.merge) {
    throw Error("[export] {}: expected a run with adapters to merge, found a whole model; leave out --merge",
                folder.string());
  }
  if (adapted && !alone && !options.merge) {
    throw Error(
        "[export] {}: expected a choice for a run with adapters, found --to {} alone; add --merge for the whole model, "
        "or choose --to peft or --to gguf-lora for the adapters",
        folder.string(), to);
  }
  if (alone && options.merge) {
    throw Error("[export] merge: expected --to hf or --to gguf, found --to {}, which writes the adapters alone", to);
  }
}

// A run that was started from one with adapters has the result of merging those as its base, and nobody else has.
std::string base_name(const fs::path& folder, const RunConfig& config) {
  std::error_code ignored;
  const bool merged = fs::exists(fs::path(config.init.from) / formats::kPeftWeightsFile, ignored);
  return merged ? fs::absolute(open_base(folder).path()).lexically_normal().string() : config.init.from;
}

// A model with its weights, in whatever place.
struct Source {
  const fs::path& folder;
  const RunConfig& config;
  const nn::ModelConfig& model;
  const data::Tokenizer* tokenizer;
  std::function<TensorSource(const nn::Parameter&)> adapter;  // a matrix of one
  std::function<std::vector<TensorSource>()> merged;
};

std::vector<TensorSource> adapter_weights(const Source& source) {
  std::vector<TensorSource> weights;
  const nn::Declaration declaration = nn::declare(source.model);
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    if (parameter.adapter) weights.push_back(source.adapter(parameter));
  }
  return weights;
}

formats::ExportResult export_source(const Source& source, const fs::path& out, const formats::ExportOptions& options) {
  const bool alone = formats::writes_adapters(options.to);
  check_choice(source.folder, source.config.is_adapted(), options);
  check_place(out);
  const formats::ExportedModel exported{.name = source.folder.string(),
                                        .model = alone ? source.model : formats::without_adapters(source.model),
                                        .dropout = source.config.model.dropout,
                                        .weights = alone ? adapter_weights(source) : source.merged(),
                                        .tokenizer = source.tokenizer,
                                        .files = formats::read_model_files(source.folder),
                                        .base = alone ? base_name(source.folder, source.config) : ""};
  return formats::export_model(exported, out, options);
}

}  // namespace

formats::ExportResult TrainedModel::export_to(const fs::path& out, const formats::ExportOptions& options) const {
  const nn::ParameterTable& table = model->parameters();
  const auto values = [&](const nn::Parameter& parameter) {  // of the same parameter of another table
    const nn::Parameter& own = *std::ranges::find(table.all(), parameter.name, &nn::Parameter::name);
    return std::as_const(model->weights()).values().subspan(own.offset, own.size);
  };
  const auto tensor = [&](const nn::Parameter& p) { return formats::memory_tensor(p.name, p.shape, values(p)); };
  const auto merged = [&] { return formats::merged_weights(model->config(), {.base = tensor, .adapters = values}); };
  return export_source({folder, config, model->config(), tokenizer.get(), tensor, merged}, out, options);
}

std::vector<TensorSource> SavedModel::weights() const {
  const auto stored = [this](const nn::Parameter& parameter) {
    const safetensors::Tensor& tensor = (base ? *base : checkpoint).at(parameter.name, parameter.shape);
    return formats::stored_tensor(tensor.name, tensor.shape, formats::GgmlType::kF32, tensor.bytes);
  };
  const auto adapter = [this](const nn::Parameter& parameter) {
    const safetensors::Tensor& tensor = checkpoint.at(checkpoint::peft_name(model, parameter.name), parameter.shape);
    return std::span(reinterpret_cast<const float*>(tensor.bytes.data()), parameter.size);
  };
  return formats::merged_weights(model, {.base = stored, .adapters = adapter});
}

formats::ExportResult SavedModel::export_to(const fs::path& out, const formats::ExportOptions& options) const {
  const auto adapter = [this](const nn::Parameter& parameter) {
    const safetensors::Tensor& tensor = checkpoint.at(checkpoint::peft_name(model, parameter.name), parameter.shape);
    return formats::stored_tensor(parameter.name, tensor.shape, formats::GgmlType::kF32, tensor.bytes);
  };
  const auto merged = [this] { return weights(); };
  formats::ExportResult result = export_source({folder, config, model, tokenizer.get(), adapter, merged}, out, options);
  checkpoint.model().check_intact();
  if (base) base->model().check_intact();
  return result;
}

}  // namespace quern::train
