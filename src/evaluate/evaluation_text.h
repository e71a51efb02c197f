// Text for evaluating a trained model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/token_stream.h"
#include "dataset/dataset.h"
#include "evaluate/evaluate.h"
#include "evaluate/load.h"

namespace quern::train {

struct EvaluationText {
  std::string note;                   // why bits per byte is unknown or uncertain; empty if it is certain
  std::vector<data::HeldOut> ranges;  // one, or one for each source of the data
  // Owners of the tokens in `ranges`.
  Dataset dataset;
  std::unique_ptr<data::TokenStream> other;
};

// The text or token shards in `paths`, or the text held out from training if `paths` is empty. Error if it is too short
// for the model, if nothing was held out, if the run's data has changed since training, or if shards were made with
// another tokenizer than the model's or have an id outside its vocabulary.
EvaluationText open_evaluation_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths);

// Runs evaluate() on that text, in windows of the model's context length.
Evaluation evaluate_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths, size_t threads);

}  // namespace quern::train
