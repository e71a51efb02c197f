#include "evaluate/load.h"

#include <utility>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/base_model.h"
#include "evaluate/find_checkpoint.h"
#include "formats/generation_config.h"
#include "formats/model_files.h"

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

void expect_language_model(const RunConfig& config, const std::filesystem::path& folder) {
  if (!config.is_selfplay()) return;
  throw Error("[run] {}: expected a language model, found a run of self-play; use `quern play --run {}`",
              folder.string(), folder.string());
}

const data::Tokenizer& TrainedModel::needed_tokenizer() const {
  if (tokenizer != nullptr) return *tokenizer;
  throw Error(
      "[run] {}: expected a tokenizer.json, found none; the run was trained on token shards, or imported without one",
      folder.string());
}

std::vector<checkpoint::TensorRef> TrainedModel::weights() const { return checkpoint::weight_refs(*model); }

SavedModel open_model(const std::filesystem::path& path, const Warn& warn, std::string_view wanted) {
  const auto [folder, chosen] = find_checkpoint(path, wanted);
  const RunConfig config = read_config(folder);
  expect_language_model(config, folder);
  auto found = chosen ? std::optional(checkpoint::Checkpoint(*chosen, checkpoint::Parts::kWeights))
                      : newest_checkpoint(folder, warn, checkpoint::Parts::kWeights);
  if (!found) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder.string());
  const std::filesystem::path file = folder / kTokenizerFile;
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (std::filesystem::exists(file)) tokenizer = data::Tokenizer::load(file.string());
  size_t vocabulary = config.model.vocabulary;
  if (vocabulary == 0 && tokenizer != nullptr) vocabulary = static_cast<size_t>(tokenizer->vocabulary_size());
  std::optional<checkpoint::Checkpoint> base;
  if (config.is_adapted()) base = open_base(folder);
  return {folder,
          config,
          model_config(config, static_cast<uint32_t>(vocabulary)),
          std::move(*found),
          std::move(tokenizer),
          std::move(base)};
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
  if (saved.base) saved.base->load({checkpoint::base_refs(*trained.model), {}});
  trained.model->weights().repack();
  return trained;
}

}  // namespace quern::train
