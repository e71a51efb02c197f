#include "evaluate/load.h"

#include <utility>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/find_checkpoint.h"
#include "formats/generation_config.h"
#include "formats/model_files.h"

namespace quern::train {
namespace {

// Other files among the checkpoints of a run would be taken for damaged ones.
void check_place(const std::filesystem::path& out) {
  std::error_code ignored;
  const std::filesystem::path parent = std::filesystem::weakly_canonical(out, ignored).parent_path();
  if (parent.filename() != kCheckpointFolder || !std::filesystem::exists(parent.parent_path() / kConfigFile)) return;
  throw Error("[export] {}: expected a place outside the checkpoints of a run, found {}", out.string(),
              parent.string());
}

formats::ExportResult export_weights(const std::filesystem::path& folder, const RunConfig& config,
                                     const nn::ModelConfig& model, const data::Tokenizer* tokenizer,
                                     std::vector<formats::TensorSource> weights, const std::filesystem::path& out,
                                     const formats::ExportOptions& options) {
  const formats::ExportedModel exported{.name = folder.string(),
                                        .model = model,
                                        .dropout = config.model.dropout,
                                        .weights = std::move(weights),
                                        .tokenizer = tokenizer,
                                        .files = formats::read_model_files(folder)};
  check_place(out);
  return formats::export_model(exported, out, options);
}

}  // namespace

std::optional<checkpoint::Checkpoint> newest_checkpoint(const std::filesystem::path& folder, const Warn& warn,
                                                        checkpoint::Parts parts) {
  std::vector<std::string> reasons;
  auto found = checkpoint::find_newest_valid(
      folder / kCheckpointFolder, [&](const std::string& reason) { reasons.push_back(reason); }, parts);
  if (!found && !reasons.empty()) {
    throw Error("[run] {}: expected a complete checkpoint, found {} damaged; the newest: {}", folder.string(),
                reasons.size(), reasons.front());
  }
  for (const std::string& reason : reasons) warn("skipped " + reason);
  return found;
}

const data::Tokenizer& TrainedModel::needed_tokenizer() const {
  if (tokenizer != nullptr) return *tokenizer;
  throw Error(
      "[run] {}: expected a tokenizer.json, found none; the run was trained on token shards, or imported without one",
      folder.string());
}

std::vector<checkpoint::TensorRef> TrainedModel::weights() const {
  return checkpoint::tensor_refs(model->parameters(), model->weights().values());
}

formats::ExportResult TrainedModel::export_to(const std::filesystem::path& out,
                                              const formats::ExportOptions& options) const {
  std::vector<formats::TensorSource> sources;
  for (const checkpoint::TensorRef& ref : weights()) {
    sources.push_back(formats::memory_tensor(ref.name, ref.shape, ref.values));
  }
  return export_weights(folder, config, model->config(), tokenizer.get(), std::move(sources), out, options);
}

formats::ExportResult SavedModel::export_to(const std::filesystem::path& out,
                                            const formats::ExportOptions& options) const {
  std::vector<formats::TensorSource> sources;
  const nn::Declaration declaration = nn::declare(model);
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    const safetensors::Tensor& tensor = checkpoint.at(parameter.name, parameter.shape);
    sources.push_back(formats::stored_tensor(tensor.name, tensor.shape, formats::GgmlType::kF32, tensor.bytes));
  }
  formats::ExportResult result =
      export_weights(folder, config, model, tokenizer.get(), std::move(sources), out, options);
  checkpoint.model().check_intact();
  return result;
}

SavedModel open_model(const std::filesystem::path& path, const Warn& warn, std::string_view wanted) {
  const auto [folder, chosen] = find_checkpoint(path, wanted);
  const RunConfig config = read_config(folder);
  auto found = chosen ? std::optional(checkpoint::Checkpoint(*chosen, checkpoint::Parts::kWeights))
                      : newest_checkpoint(folder, warn, checkpoint::Parts::kWeights);
  if (!found) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder.string());
  const std::filesystem::path file = folder / kTokenizerFile;
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (std::filesystem::exists(file)) tokenizer = data::Tokenizer::load(file.string());
  size_t vocabulary = config.model.vocabulary;
  if (vocabulary == 0 && tokenizer != nullptr) vocabulary = static_cast<size_t>(tokenizer->vocabulary_size());
  return {folder, config, model_config(config, static_cast<uint32_t>(vocabulary)), std::move(*found),
          std::move(tokenizer)};
}

TrainedModel load_model(const std::filesystem::path& path, const Warn& warn, std::string_view wanted) {
  SavedModel saved = open_model(path, warn, wanted);
  const size_t vocabulary = saved.model.vocabulary;
  TrainedModel trained{
      .folder = saved.folder,
      .config = saved.config,
      .model = nn::make_language_model(saved.model, nn::Packing::for_inference()),
      .tokenizer = std::move(saved.tokenizer),
      .state = saved.checkpoint.state(),
      .end_tokens = formats::read_end_tokens(saved.folder / formats::kGenerationConfigFile, vocabulary, warn)};
  saved.checkpoint.load({trained.weights(), {}});
  trained.model->weights().repack();
  return trained;
}

}  // namespace quern::train
