// quern generate: generates text with a trained model.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/machine_json.h"
#include "cli/prompt_input.h"
#include "cli/prompt_progress.h"
#include "cli/run_argument.h"
#include "cli/shown_text.h"
#include "cli/warnings.h"
#include "core/json.h"
#include "evaluate/load.h"
#include "generate/generated_text.h"

namespace quern::cli {
namespace {

struct Options {
  RunArgument run;
  PromptInput prompt;
  GenerateOptions generate;
  std::vector<std::string> stop;
  uint64_t samples = 1;
  size_t threads = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern generate runs/first --prompt "Once"
  quern generate runs/first --tokens 500 --temperature 0.8 --top-k 40 --seed 7
  quern generate runs/first --prompt "Once" --min-p 0.05 --repeat-penalty 1.1
  quern generate runs/first --prompt "Once" --stop "The end" --stop $'\n\n'
  quern generate runs/first --prompt "Once" --samples 5  five different texts
  quern generate runs/first --prompt-file start.txt
  echo "Once" | quern generate runs/first --prompt -     prompt from standard input
  quern generate runs/first --prompt ""                  start a new document
  quern generate runs/first --samples 3 --json | jq -r .text
  quern generate runs/first/checkpoints/step-00000500    use this checkpoint

The same run, prompt and seed give the same text with any number of threads; sample i is the same for any --samples.
One line break at the end of a prompt from a file or from standard input is ignored. --json prints one object per
sample, each on its own line: prompt, text (without the prompt), tokens, finish ("length", "end" or "stop"), seed,
tokens/s.

The options apply in this order: --repeat-penalty, --temperature, --top-k, --top-p, --min-p. The penalty also applies
with --temperature 0, the others do not. A text ends before the first --stop text, which is not printed.

A model with a bpe tokenizer stops at the end of a document; with --ignore-end it writes <|endoftext|> and continues
with the next one. The same holds for the tokens that generation_config.json in the run lists as eos_token_id. In a
prompt, <|endoftext|> is that token. A model whose operations are too small to be split uses
fewer threads than requested.)";

// Prints `header` and the prompt only when the first characters are known, so that an error leaves no output.
void print_text(GeneratedText& text, const Prompt& prompt, const std::string& header) {
  std::string piece = text.next();
  show_text(header + prompt.text);
  for (; !piece.empty(); piece = text.next()) show_text(piece);
  show_text("\n");
}

void print_json(GeneratedText& pieces, const Prompt& prompt, const Sampling& sampling) {
  std::string text;
  const auto start = std::chrono::steady_clock::now();
  for (std::string piece = pieces.next(); !piece.empty(); piece = pieces.next()) text += piece;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Json object = {{"sample", sampling.sample + 1},
                       {"prompt", prompt.text},
                       {"text", text},
                       {"prompt_tokens", prompt.tokens.size()},
                       {"tokens", pieces.tokens()},
                       {"finish", name_of(pieces.finish().value())},
                       {"seed", sampling.seed},
                       {"tokens_per_s", static_cast<double>(pieces.tokens()) / std::max(seconds.count(), 1e-9)}};
  fmt::print("{}\n", json_text(object));
  std::fflush(stdout);
}

int run_generate(const Options& options) {
  const std::string run = run_of(options.run, "generate");
  check(options.generate.sampling);
  check_stop(options.stop);
  const std::optional<std::string> given = read_prompt(options.prompt);
  const train::TrainedModel trained = train::load_model(run, warn);
  const data::Tokenizer& tokenizer = trained.needed_tokenizer();
  const Prompt prompt = given ? prompt_of(tokenizer, *given) : default_prompt(tokenizer);
  GenerateOptions generate = options.generate;
  generate.end_tokens = trained.end_tokens;
  PromptProgress progress;
  Decoder decoder(*trained.model, {.capacity = positions_for(*trained.model, prompt.tokens.size(), generate.max_tokens),
                                   .threads = options.threads,
                                   .on_block = [&](size_t done, size_t total) { progress.update(done, total); }});
  for (uint32_t i = 0; i < options.samples; ++i) {
    generate.sampling.sample = i;
    progress.start();
    GeneratedText text(decoder, tokenizer, prompt.tokens, generate, options.stop);
    progress.stop();
    if (options.json) {
      print_json(text, prompt, generate.sampling);
    } else {
      const std::string header = fmt::format("--- sample {} of {} ---\n", i + 1, options.samples);
      print_text(text, prompt, options.samples > 1 ? header : "");
    }
  }
  return 0;
}

}  // namespace

Command add_generate(Parser root) {
  const auto options = std::make_shared<Options>();
  GenerateOptions& generate = options->generate;
  Parser command = root.add_command("generate", "Generate text with a trained model");
  add_run(command, options->run, "Directory of the run, or of one of its checkpoints");
  command.add_text("--prompt", options->prompt.text, "TEXT",
                   "Beginning of the text (default: a new line); - reads standard input");
  command.add_text("--prompt-file", options->prompt.file, "FILE",
                   "File with the beginning of the text; - reads standard input");
  add_generation_options(command, generate, "Maximum number of tokens to generate");
  command.add_number("--samples", options->samples, "N", "Number of texts", {1, 1'000'000});
  command.add_list("--stop", options->stop, "TEXT", "End the text before this one; repeatable");
  command.add_flag("--ignore-end", generate.ignore_end,
                   "Continue after the end of a document instead of stopping there");
  command.add_flag("--json", options->json, "Print one JSON object per sample");
  command.add_threads(options->threads);
  command.set_footer(kExamples);
  return {command, [options] { return run_generate(*options); }};
}

}  // namespace quern::cli
