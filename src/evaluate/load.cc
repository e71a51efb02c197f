#include "evaluate/load.h"

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"

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

RunPath run_path(const std::filesystem::path& path) {
  std::filesystem::path full = std::filesystem::absolute(path).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();  // RUN/ is RUN
  const bool named = checkpoint::step_of(full) && full.parent_path().filename() == kCheckpointFolder;
  if (!named || !std::filesystem::is_directory(full)) return {path, std::nullopt};
  return {full.parent_path().parent_path(), path};
}

std::optional<checkpoint::Checkpoint> find_checkpoint(const RunPath& run, const Warn& warn, checkpoint::Parts parts) {
  if (run.checkpoint) return checkpoint::Checkpoint(*run.checkpoint, parts);
  return newest_checkpoint(run.folder, warn, parts);
}

const data::Tokenizer& TrainedModel::needed_tokenizer() const {
  if (tokenizer != nullptr) return *tokenizer;
  throw Error("[run] {}: expected a tokenizer.json, found none; the run was trained on token shards", folder.string());
}

TrainedModel load_model(const std::filesystem::path& path, const Warn& warn) {
  const RunPath run = run_path(path);
  const std::filesystem::path& folder = run.folder;
  TrainedModel trained;
  trained.folder = folder;
  trained.config = read_config(folder);
  const auto found = find_checkpoint(run, warn, checkpoint::Parts::kWeights);
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
