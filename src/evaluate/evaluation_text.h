// Text for evaluating a trained model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/evaluation_windows.h"
#include "data/token_stream.h"
#include "dataset/dataset.h"
#include "evaluate/evaluate.h"
#include "evaluate/load.h"

namespace quern::train {

struct EvaluationText {
  std::string note;                            // why bits per byte is unknown or uncertain; empty if it is certain
  std::vector<data::HeldOut> ranges;           // one, or one for each source of the data
  std::optional<chat::ConversationRows> rows;  // instead of ranges, for data.format = chat
  // Owners of the tokens in `ranges`.
  Dataset dataset;
  std::unique_ptr<data::TokenStream> other;

  // What to evaluate, in windows of the model's context. This object must outlive them.
  std::unique_ptr<data::EvaluationWindows> windows(const nn::ModelConfig& model) const;
};

// The text or token shards in `paths`, or the text held out from training if `paths` is empty. Conversations if the run
// was trained on them. Error if it is too short
// for the model, if nothing was held out, if the run's data has changed since training, or if shards were made with
// another tokenizer than the model's or have an id outside its vocabulary.
EvaluationText open_evaluation_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths);

// Runs evaluate() on that text, in windows of the model's context length.
Evaluation evaluate_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths, size_t threads);

}  // namespace quern::train
