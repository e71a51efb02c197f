#include "evaluate/evaluation_text.h"

#include "config/run_folder.h"
#include "core/error.h"

namespace quern::train {
namespace {

EvaluationText open_held_out(const TrainedModel& trained) {
  EvaluationText text;
  text.dataset = open_dataset(trained.config, trained.folder / kTokenizerFile);
  check_same_data(trained.config, text.dataset, trained.state.data);
  text.ranges = text.dataset.held_out();
  if (text.ranges.empty()) {
    throw Error("eval: {} was trained without held-out text; name a text to evaluate on", trained.folder.string());
  }
  return text;
}

}  // namespace

EvaluationText open_evaluation_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths) {
  if (paths.empty()) return open_held_out(trained);
  EvaluationText text;
  text.other = tokenise(trained.needed_tokenizer(), paths, text_options(trained.config)).stream;
  text.ranges = {{{text.other.get(), 0, text.other->size()}}};
  check_length(paths.front().string(), "text", text.other->size(), trained.config.model.context);
  return text;
}

Evaluation evaluate_text(const TrainedModel& trained, const std::vector<std::filesystem::path>& paths, size_t threads) {
  const EvaluationText text = open_evaluation_text(trained, paths);
  const data::ValidationBatches windows(text.ranges, static_cast<uint32_t>(trained.model->config().context));
  return evaluate(*trained.model, windows, threads, trained.tokenizer.get());
}

}  // namespace quern::train
