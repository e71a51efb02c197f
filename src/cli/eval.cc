// quern eval: measures how well a trained model predicts text.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "core/json.h"
#include "evaluate/evaluate.h"
#include "evaluate/evaluation_text.h"
#include "evaluate/load.h"
#include "report/numbers.h"

namespace quern::cli {
namespace {

struct Options {
  std::string run;
  std::vector<std::string> data;
  size_t threads = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern eval --run runs/first                 evaluate on the text held out from training
  quern eval --run runs/book other.txt        evaluate on another text
  quern eval --run runs/book other.txt --json

The loss is in nats per token; perplexity is its exponential. Bits per byte can be compared between models with
different tokenizers.)";

void print(const train::Evaluation& result, uint64_t step, bool json) {
  const std::optional<double> bits = result.bits_per_byte();
  if (json) {
    const Json object = {{"step", step},
                         {"tokens", result.tokens},
                         {"loss", result.loss},
                         {"perplexity", result.perplexity()},
                         {"bits_per_byte", bits ? Json(*bits) : Json(nullptr)}};
    fmt::print("{}\n", json_text(object, 2));
    return;
  }
  fmt::print("step           {}\ntokens         {}\nloss           {}\nperplexity     {}\n", step, result.tokens,
             report::loss_text(result.loss), report::bounded(result.perplexity(), 3, 1e9));
  if (bits) fmt::print("bits per byte  {:.4f}\n", *bits);
}

int run_eval(const Options& options) {
  if (options.run.empty()) throw Error("eval: expected --run DIR, a trained run; run `quern eval --help`");
  Progress progress;
  progress.show("reading the model and the text");
  const train::TrainedModel trained = train::load_model(options.run, warn);
  const train::EvaluationText text = train::open_evaluation_text(trained, {options.data.begin(), options.data.end()});
  const nn::ModelConfig& config = trained.model->config();
  const data::ValidationBatches windows(text.ranges, static_cast<uint32_t>(config.context));
  progress.show(fmt::format("evaluating {} tokens", windows.windows() * config.context));
  const train::Evaluation result = train::evaluate(*trained.model, windows, options.threads, trained.tokenizer.get());
  progress.clear();
  print(result, trained.state.step, options.json);
  return 0;
}

}  // namespace

Command add_eval(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser eval = root.add_command("eval", "Measure how well a trained model predicts text");
  eval.add_words("DATA", options->data, "Text files, directories or .jsonl files (default: the run's held-out text)");
  eval.add_text("--run", options->run, "DIR", "Directory of the run");
  eval.add_threads(options->threads);
  eval.add_flag("--json", options->json, "Print one JSON object");
  eval.set_footer(kExamples);
  return {eval, [options] { return run_eval(*options); }};
}

}  // namespace quern::cli
