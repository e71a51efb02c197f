// quern generate: generates text with a trained model.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/prompt_input.h"
#include "cli/run_argument.h"
#include "cli/warnings.h"
#include "core/json.h"
#include "core/text.h"
#include "evaluate/load.h"
#include "generate/generate.h"
#include "generate/utf8_stream.h"

namespace quern::cli {
namespace {

struct Options {
  RunArgument run;
  PromptInput prompt;
  GenerateOptions generate;
  uint64_t samples = 1;
  size_t threads = 1;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern generate runs/first --prompt "Once"
  quern generate runs/first --tokens 500 --temperature 0.8 --top-k 40 --seed 7
  quern generate runs/first --prompt "Once" --samples 5  five different texts
  quern generate runs/first --prompt-file start.txt
  echo "Once" | quern generate runs/first --prompt -     prompt from standard input
  quern generate runs/first --prompt ""                  start a new document
  quern generate runs/first --samples 3 --json | jq -r .text
  quern generate runs/first/checkpoints/step-00000500    use this checkpoint

The same run, prompt and seed give the same text with any number of threads; sample i is the same for any --samples.
One line break at the end of a prompt from a file or from standard input is ignored. --json prints one object per
sample, each on its own line: prompt, text (without the prompt), tokens, finish ("length" or "end"), seed, tokens/s.

A model with a bpe tokenizer stops at the end of a document; with --ignore-end it writes <|endoftext|> and continues
with the next one. In a prompt, <|endoftext|> is that token. A model whose operations are too small to be split uses
fewer threads than requested.)";

// What all samples have in common.
struct Source {
  const data::Tokenizer& tokenizer;
  const Prompt& prompt;
  Decoder& decoder;
};

// Files and pipes get the raw text; a terminal would interpret escape codes in it.
void show(const std::string& characters) {
  static const bool terminal = isatty(STDOUT_FILENO) != 0;
  fmt::print("{}", terminal ? printable(characters, Lines::kStay) : characters);
  std::fflush(stdout);
}

// Prints `header` and the prompt only when the first token is known, so that an error leaves no output.
void print_text(Generation generation, const Source& source, const std::string& header) {
  Utf8Stream text;
  std::optional<int32_t> token = generation.next();
  show(header + source.prompt.text);
  for (; token; token = generation.next()) show(text.feed(source.tokenizer.bytes_of(*token)));
  show(text.finish() + "\n");
}

void print_json(Generation generation, const Source& source, const Sampling& sampling) {
  Utf8Stream characters;
  std::string text;
  const auto start = std::chrono::steady_clock::now();
  while (const auto token = generation.next()) text += characters.feed(source.tokenizer.bytes_of(*token));
  text += characters.finish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Json object = {{"sample", sampling.sample + 1},
                       {"prompt", source.prompt.text},
                       {"text", text},
                       {"prompt_tokens", source.prompt.tokens.size()},
                       {"tokens", generation.made()},
                       {"finish", generation.ended() ? "end" : "length"},
                       {"seed", sampling.seed},
                       {"tokens_per_s", static_cast<double>(generation.made()) / std::max(seconds.count(), 1e-9)}};
  fmt::print("{}\n", json_text(object));
  std::fflush(stdout);
}

int run_generate(const Options& options) {
  const std::string run = run_of(options.run, "generate");
  check(options.generate.sampling);
  const std::optional<std::string> text = read_prompt(options.prompt);
  const train::TrainedModel trained = train::load_model(run, warn);
  const data::Tokenizer& tokenizer = trained.needed_tokenizer();
  const Prompt prompt = text ? prompt_of(tokenizer, *text) : default_prompt(tokenizer);
  Decoder decoder(*trained.model, {.threads = options.threads});
  const Source source{tokenizer, prompt, decoder};
  GenerateOptions generate = options.generate;
  for (uint32_t i = 0; i < options.samples; ++i) {
    generate.sampling.sample = i;
    Generation generation(decoder, tokenizer, prompt.tokens, generate);
    if (options.json) {
      print_json(std::move(generation), source, generate.sampling);
    } else {
      const std::string header = fmt::format("--- sample {} of {} ---\n", i + 1, options.samples);
      print_text(std::move(generation), source, options.samples > 1 ? header : "");
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
  command.add_number("--tokens", generate.max_tokens, "N", "Maximum number of tokens to generate");
  command.add_number("--samples", options->samples, "N", "Number of texts", {1, 1'000'000});
  command.add_number(
      "--temperature", generate.sampling.temperature, "X",
      "Sampling temperature: lower is more predictable, higher more varied; 0 always picks the most likely token");
  command.add_number("--top-k", generate.sampling.top_k, "K", "Sample from the K most likely tokens only; 0 for all");
  command.add_number("--top-p", generate.sampling.top_p, "P",
                     "Sample from the most likely tokens with this total probability");
  command.add_number("--seed", generate.sampling.seed, "N", "Random seed");
  command.add_flag("--ignore-end", generate.ignore_end,
                   "Continue after the end of a document instead of stopping there");
  command.add_flag("--json", options->json, "Print one JSON object per sample");
  command.add_threads(options->threads);
  command.set_footer(kExamples);
  return {command, [options] { return run_generate(*options); }};
}

}  // namespace quern::cli
