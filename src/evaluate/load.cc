#include "evaluate/load.h"

#include "checkpoint/folder.h"
#include "checkpoint/hf_export.h"
#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/find_checkpoint.h"
#include "evaluate/generation_config.h"

namespace quern::train {

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
  throw Error("[run] {}: expected a tokenizer.json, found none; the run was trained on token shards", folder.string());
}

std::vector<checkpoint::TensorRef> TrainedModel::weights() const {
  return checkpoint::tensor_refs(model->parameters(), model->weights().values());
}

std::vector<std::string> TrainedModel::export_to(const std::filesystem::path& path) const {
  const std::vector<checkpoint::TensorRef> tensors = weights();
  if (const std::string settings = checkpoint::unlike_gpt2(model->config()); !settings.empty()) {
    throw Error(
        "[export] {}: expected a model that transformers can open, a GPT-2, found {}; its checkpoints contain the "
        "weights as safetensors",
        folder.string(), settings);
  }
  checkpoint::HfConfig hf{.model = model->config(), .dropout = config.model.dropout};
  if (tokenizer != nullptr) hf.end_of_text = tokenizer->end_of_text();
  return checkpoint::export_hf({.weights = tensors, .config = hf, .tokenizer = tokenizer.get()}, path);
}

TrainedModel load_model(const std::filesystem::path& path, const Warn& warn, std::string_view wanted) {
  const auto [folder, chosen] = find_checkpoint(path, wanted);
  TrainedModel trained;
  trained.folder = folder;
  trained.config = read_config(folder);
  const auto found = chosen ? std::optional(checkpoint::Checkpoint(*chosen, checkpoint::Parts::kWeights))
                            : newest_checkpoint(folder, warn, checkpoint::Parts::kWeights);
  if (!found) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder.string());
  const std::filesystem::path tokenizer = folder / kTokenizerFile;
  if (std::filesystem::exists(tokenizer)) trained.tokenizer = data::Tokenizer::load(tokenizer.string());
  size_t vocabulary = trained.config.model.vocabulary;
  if (vocabulary == 0 && trained.tokenizer != nullptr) {
    vocabulary = static_cast<size_t>(trained.tokenizer->vocabulary_size());
  }
  trained.model = nn::make_language_model(model_config(trained.config, static_cast<uint32_t>(vocabulary)), true);
  nn::Weights& weights = trained.model->weights();
  found->load({trained.weights(), {}});
  weights.repack();
  trained.state = found->state();
  trained.end_tokens = read_end_tokens(folder / kGenerationConfigFile, trained.model->config().vocabulary, warn);
  return trained;
}

}  // namespace quern::train
