#include "evaluate/evaluation_text.h"

#include <algorithm>
#include <utility>

#include "config/run_folder.h"
#include "core/error.h"
#include "data/token_shards.h"
#include "dataset/chat_dataset.h"
#include "dataset/data_kind.h"

namespace quern::train {
namespace {

EvaluationText open_held_out(const TrainedModel& trained) {
  if (trained.state.data == data::Fingerprint{}) {
    throw Error("eval: {} is an imported model without held-out text; name a text to evaluate on",
                trained.folder.string());
  }
  EvaluationText text;
  text.dataset = open_dataset(trained.config, trained.folder / kTokenizerFile, {.resumed = true});
  check_same_data(trained.config, text.dataset, trained.state.data);
  if (text.dataset.chat) text.rows = std::move(text.dataset.chat->validation);
  if (text.rows) return text;
  text.ranges = text.dataset.held_out();
  if (text.ranges.empty()) {
    throw Error("eval: {} was trained without held-out text; name a text to evaluate on", trained.folder.string());
  }
  return text;
}

// nanoGPT's files do not contain the tokenizer's digest, but a tokenizer.json next to them says as much.
bool is_beside(const data::TokenShards& shards, const data::Tokenizer& tokenizer) {
  for (size_t i = 0; i < shards.shards(); ++i) {
    const std::filesystem::path file = shards.path(i).parent_path() / kTokenizerFile;
    if (!std::filesystem::exists(file)) return false;
    if (data::Tokenizer::load(file.string())->digest() == tokenizer.digest()) continue;
    throw Error("[data] {}: expected tokens of the run's tokenizer, found {} of another one next to it",
                shards.path(i).string(), file.string());
  }
  return true;
}

// Reads every token once, 1 GB in 0.3 s: an id outside the vocabulary is reported before the model starts,
// and it is always the first one. During the evaluation it would be that of whichever thread comes first.
void check_ids(const data::TokenStream& stream) {
  constexpr uint64_t kPiece = 1 << 16;
  std::vector<int32_t> tokens(kPiece);
  for (uint64_t at = 0; at < stream.size(); at += kPiece) {
    stream.copy(at, std::min(kPiece, stream.size() - at), tokens.data());
  }
}

EvaluationText open_shards(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths) {
  const auto vocabulary = static_cast<uint32_t>(trained.model->config().vocabulary);
  auto shards = std::make_unique<data::TokenShards>(paths, vocabulary);
  EvaluationText text;
  if (trained.tokenizer == nullptr) {
    text.note = "the run has no tokenizer.json";
  } else {
    shards->check_tokenizer(trained.tokenizer->digest(), trained.folder / kTokenizerFile);
    if (!shards->have_digests() && !is_beside(*shards, *trained.tokenizer)) {
      text.note = "the shards do not say whether the run's tokenizer made them";
    }
  }
  check_ids(*shards);
  text.other = std::move(shards);
  return text;
}

EvaluationText open_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths) {
  EvaluationText text;
  text.other = tokenise(trained.needed_tokenizer(), paths, text_options(trained.config)).stream;
  return text;
}

}  // namespace

EvaluationText open_evaluation_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths) {
  if (paths.empty()) return open_held_out(trained);
  if (trained.config.has_chat()) {
    EvaluationText text;
    text.rows = open_conversations(trained.config, trained.folder, trained.needed_tokenizer(), paths);
    return text;
  }
  const bool shards = are_shards(paths);
  EvaluationText text = shards ? open_shards(trained, paths) : open_text(trained, paths);
  text.ranges = {{{text.other.get(), 0, text.other->size()}}};
  check_length(paths.front().string(), shards ? "shards" : "text", text.other->size(), trained.config.model.context);
  return text;
}

Evaluation evaluate_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths, size_t threads) {
  const EvaluationText text = open_evaluation_text(trained, paths);
  return evaluate(*trained.model, *text.windows(trained.model->config()), threads, trained.tokenizer.get());
}

std::unique_ptr<data::EvaluationWindows> EvaluationText::windows(const nn::ModelConfig& model) const {
  if (rows) return std::make_unique<chat::ValidationRows>(*rows);
  return std::make_unique<data::ValidationBatches>(ranges, static_cast<uint32_t>(model.context));
}

}  // namespace quern::train
