// The text that a trained model is evaluated on.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/token_stream.h"
#include "train/dataset.h"
#include "train/evaluate.h"
#include "train/load.h"

namespace quern::train {

struct EvaluationText {
  data::TokenRange range;
  // What it is a range of.
  Dataset dataset;
  std::unique_ptr<data::TokenStream> other;
};

// The text held out from training when `paths` is empty, else that of these files and folders. Error when it is too
// short for the model, nothing was held out, or the run's data is no longer what it was trained on.
EvaluationText open_evaluation_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths);

// evaluate() on that text, in windows of the model's context.
Evaluation evaluate_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths, size_t threads);

}  // namespace quern::train
