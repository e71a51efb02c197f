// quern eval: measures how well a trained model predicts text.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/run_argument.h"
#include "cli/warnings.h"
#include "core/json.h"
#include "evaluate/evaluate.h"
#include "evaluate/evaluation_text.h"
#include "evaluate/load.h"
#include "report/numbers.h"

namespace quern::cli {
namespace {

struct Options {
  std::string run;                 // of --run
  std::vector<std::string> words;  // RUN, unless --run was given, and DATA
  size_t threads = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern eval runs/first                  evaluate on the text held out from training
  quern eval runs/book other.txt         evaluate on another text
  quern eval runs/book tokens/val.bin    evaluate on token shards of llm.c, nanoGPT or `quern tokenize`
  quern eval runs/book other.txt --json

`quern eval --run RUN DATA` is the same as `quern eval RUN DATA`.

The loss is in nats per token; perplexity is its exponential. Bits per byte can be compared between models with
different tokenizers.)";

void print_json(const train::Evaluation& result, uint64_t step, const std::string& note) {
  const std::optional<double> bits = result.bits_per_byte();
  Json object = {{"step", step},
                 {"tokens", result.tokens},
                 {"loss", result.loss},
                 {"perplexity", result.perplexity()},
                 {"bits_per_byte", bits ? Json(*bits) : Json(nullptr)}};
  if (!note.empty()) object["bits_per_byte_note"] = note;
  fmt::print("{}\n", json_text(object, 2));
}

// `note` is that of EvaluationText.
void print_text(const train::Evaluation& result, uint64_t step, const std::string& note) {
  const std::optional<double> bits = result.bits_per_byte();
  fmt::print("step           {}\ntokens         {}\nloss           {}\nperplexity     {}\n", step, result.tokens,
             report::loss_text(result.loss), report::bounded(result.perplexity(), 3, 1e9));
  if (bits) fmt::print("bits per byte  {:.4f}{}\n", *bits, note.empty() ? "" : fmt::format(" ({})", note));
  if (!bits) fmt::print("bits per byte  unknown: {}\n", note.empty() ? "the run has no tokenizer.json" : note);
}

int run_eval(const Options& options) {
  std::vector<std::string> data = options.words;
  const std::string run = take_run(options.run, data, "eval");
  Progress progress;
  progress.show("reading the model and the text");
  const train::TrainedModel trained = train::load_model(run, warn);
  const train::EvaluationText text = train::open_evaluation_text(trained, {data.begin(), data.end()});
  const nn::ModelConfig& config = trained.model->config();
  const std::unique_ptr<data::EvaluationWindows> windows = text.windows(config);
  progress.show(fmt::format("evaluating {} tokens", windows->targets()));
  const train::Evaluation result = train::evaluate(*trained.model, *windows, options.threads, trained.tokenizer.get());
  progress.clear();
  (options.json ? print_json : print_text)(result, trained.state.step, text.note);
  return 0;
}

}  // namespace

Command add_eval(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser eval = root.add_command("eval", "Measure how well a trained model predicts text");
  eval.add_words("RUN DATA", options->words,
                 "Directory of the run, or of one of its checkpoints; then text files, directories, .jsonl files or "
                 "token shards (.bin) (default: the run's held-out text)");
  eval.add_text("--run", options->run, "RUN", "The run, if it is not the first argument");
  eval.add_threads(options->threads);
  eval.add_flag("--json", options->json, "Print one JSON object");
  eval.set_footer(kExamples);
  return {eval, [options] { return run_eval(*options); }};
}

}  // namespace quern::cli
