#include "evaluate/load.h"

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/find_checkpoint.h"

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

TrainedModel load_model(const std::filesystem::path& path, const Warn& warn) {
  const auto [folder, chosen] = find_checkpoint(path);
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
  found->load({checkpoint::tensor_refs(trained.model->parameters(), weights.values()), {}});
  weights.repack();
  trained.state = found->state();
  return trained;
}

}  // namespace quern::train
