// quern eval: how well a trained model predicts a text.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "train/dataset.h"
#include "train/evaluate.h"
#include "train/load.h"

namespace quern::cli {
namespace {

struct Options {
  std::string run;
  std::vector<std::string> data;
  size_t threads = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern eval --run runs/first                 on the text that was held out from training
  quern eval --run runs/book other.txt        on another text
  quern eval --run runs/book other.txt --json

loss is in nats per token; perplexity is its exponential; bits per byte can be compared between models with other
tokenizers.)";

// The tokens of the run's held-out text, or of DATA.
struct Text {
  train::Dataset dataset;                    // keeps the run's own stream
  std::unique_ptr<data::TokenStream> other;  // of DATA
  data::TokenRange range;
};

Text open_text(const Options& options, const train::TrainedModel& trained) {
  Text text;
  if (options.data.empty()) {
    text.dataset = train::open_dataset(trained.config, std::filesystem::path(options.run) / "tokenizer.json");
    train::check_same_data(trained.config, text.dataset, trained.state);
    text.range = text.dataset.split.validation;
    if (text.range.size() == 0) {
      throw Error("eval: {} was trained with nothing held out; name a text to evaluate on", options.run);
    }
    return text;
  }
  if (trained.tokenizer == nullptr) {
    throw Error("[run] {}: expected a tokenizer.json, found none; the run was trained on token shards", options.run);
  }
  uint64_t bytes = 0;
  text.other = train::tokenise(*trained.tokenizer, {options.data.begin(), options.data.end()}, &bytes);
  text.range = {text.other.get(), 0, text.other->size()};
  train::check_length(options.data.front(), "text", text.range.size(), trained.config.model.context);
  return text;
}

void print(const train::Evaluation& result, uint64_t step, bool json) {
  const std::optional<double> bits = result.bits_per_byte();
  if (json) {
    const Json object = {{"step", step},
                         {"tokens", result.tokens},
                         {"loss", result.loss},
                         {"perplexity", result.perplexity()},
                         {"bits_per_byte", bits ? Json(*bits) : Json(nullptr)}};
    fmt::print("{}\n", object.dump(2));
    return;
  }
  fmt::print("step           {}\ntokens         {}\nloss           {:.4f}\nperplexity     {:.3f}\n", step,
             result.tokens, result.loss, result.perplexity());
  if (bits) fmt::print("bits per byte  {:.4f}\n", *bits);
}

int run_eval(const Options& options) {
  if (options.run.empty()) throw Error("eval: expected --run DIR, a trained run; run `quern eval --help`");
  Warnings warnings;
  Progress progress;
  progress.show("reading the model and the text");
  const train::TrainedModel trained = train::load_model(options.run, warnings);
  const Text text = open_text(options, trained);
  const ModelConfig& config = trained.model->config();
  const data::ValidationBatches windows(text.range, static_cast<uint32_t>(config.context));
  progress.show(fmt::format("evaluating {} tokens", windows.windows() * config.context));
  const train::Evaluation result = train::evaluate(*trained.model, windows, options.threads, trained.tokenizer.get());
  progress.clear();
  print(result, trained.state.step, options.json);
  return 0;
}

}  // namespace

Command add_eval(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* eval = app.add_subcommand("eval", "Measure how well a trained model predicts a text");
  eval->add_option("DATA", options->data, "Text files, folders or .jsonl files; none: the run's held-out text");
  eval->add_option("--run", options->run, "The folder of the run")->type_name("DIR");
  add_threads_option(*eval, options->threads);
  eval->add_flag("--json", options->json, "Print one JSON object");
  eval->footer(kExamples);
  return {eval, [options] { return run_eval(*options); }};
}

}  // namespace quern::cli
